//! The flags of traces, with the environment variables of OpenTelemetry.

use std::path::PathBuf;

use anyhow::{Context, bail};

use crate::telemetry::traces::{Collector, Sampler};

/// Where and how traces are exported.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Traces")]
pub(super) struct TraceArgs {
    /// Export a span for each review to this OTLP collector, over HTTP with protobuf, at the path /v1/traces.
    /// Without it, no span is created.
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    otlp_endpoint: Option<String>,

    /// The same as a complete address, with its path. It takes precedence.
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")]
    otlp_traces_endpoint: Option<String>,

    /// Headers for the collector: name=value, comma-separated, with values in percent-encoding.
    #[arg(
        long,
        value_name = "HEADERS",
        env = "OTEL_EXPORTER_OTLP_HEADERS",
        hide_env_values = true
    )]
    otlp_headers: Option<String>,

    /// Certificate authorities of an https collector, PEM. Default: those of the system.
    #[arg(long, value_name = "FILE", env = "OTEL_EXPORTER_OTLP_CERTIFICATE")]
    otlp_certificate: Option<PathBuf>,

    /// The protocol: http/protobuf is the only one.
    #[arg(long, value_name = "NAME", env = "OTEL_EXPORTER_OTLP_PROTOCOL", hide = true)]
    otlp_protocol: Option<String>,

    /// Which traces are exported: parentbased_always_on follows the decision of the API server and exports
    /// requests without one; always_on, always_off, traceidratio, parentbased_always_off,
    /// parentbased_traceidratio.
    #[arg(
        long,
        value_name = "SAMPLER",
        env = "OTEL_TRACES_SAMPLER",
        default_value = "parentbased_always_on"
    )]
    trace_sampler: String,

    /// The ratio of a traceidratio sampler, from 0 to 1.
    #[arg(long, value_name = "RATIO", env = "OTEL_TRACES_SAMPLER_ARG")]
    trace_sampler_arg: Option<String>,

    /// The name of this service in traces.
    #[arg(long, value_name = "NAME", env = "OTEL_SERVICE_NAME", default_value = "statusgate")]
    service_name: String,

    /// More attributes of this process: name=value, comma-separated, with values in percent-encoding.
    #[arg(long, value_name = "ATTRIBUTES", env = "OTEL_RESOURCE_ATTRIBUTES")]
    resource_attributes: Option<String>,
}

impl TraceArgs {
    /// The collector; `None` without an address.
    pub(super) fn collector(&self) -> anyhow::Result<Option<Collector>> {
        let Some(url) = self.url() else { return Ok(None) };
        if let Some(protocol) = given(self.otlp_protocol.as_ref())
            && protocol != "http/protobuf"
        {
            bail!("OTLP protocol {protocol:?} is not supported; use http/protobuf");
        }
        let authorities =
            self.otlp_certificate.as_ref().filter(|path| !path.as_os_str().is_empty());
        let authorities = authorities.map(|path| {
            std::fs::read(path).with_context(|| format!("failed to read {}", path.display()))
        });
        let authorities = authorities.transpose()?;
        let mut collector = Collector::new(&url, authorities.as_deref(), self.resource()?)?;
        let headers = given(self.otlp_headers.as_ref()).unwrap_or_default();
        for (name, value) in pairs("--otlp-headers", headers)? {
            collector.header(&name, &value)?;
        }
        let sampler = given(Some(&self.trace_sampler)).unwrap_or("parentbased_always_on");
        let argument = given(self.trace_sampler_arg.as_ref());
        collector.sampler = Sampler::named(sampler, argument)?;
        Ok(Some(collector))
    }

    fn url(&self) -> Option<String> {
        let complete = given(self.otlp_traces_endpoint.as_ref()).map(str::to_owned);
        complete.or_else(|| {
            let base = given(self.otlp_endpoint.as_ref())?;
            Some(format!("{}/v1/traces", base.trim_end_matches('/')))
        })
    }

    fn resource(&self) -> anyhow::Result<Vec<(String, String)>> {
        let given_attributes = given(self.resource_attributes.as_ref()).unwrap_or_default();
        let mut resource = pairs("--resource-attributes", given_attributes)?;
        resource.retain(|(name, _)| name != "service.name" && name != "service.version");
        resource.push(("service.name".to_owned(), self.service_name.clone()));
        resource.push(("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()));
        Ok(resource)
    }
}

/// OpenTelemetry defines that an empty variable counts as unset.
fn given(value: Option<&String>) -> Option<&str> {
    value.map(|text| text.trim()).filter(|text| !text.is_empty())
}

/// Reads comma-separated `name=value` pairs. The message does not show the values: headers are secrets.
fn pairs(flag: &str, text: &str) -> anyhow::Result<Vec<(String, String)>> {
    let mut pairs = Vec::new();
    for part in text.split(',').filter(|part| !part.trim().is_empty()) {
        let pair = part
            .split_once('=')
            .and_then(|(name, value)| Some((name.trim().to_owned(), decoded(value.trim())?)));
        let Some(pair) = pair.filter(|(name, _)| !name.is_empty()) else {
            bail!("{flag} has a part that is not name=value, with a value in percent-encoding");
        };
        pairs.push(pair);
    }
    Ok(pairs)
}

/// Decodes percent-encoding.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        traces: TraceArgs,
    }

    fn parsed(args: &[&str]) -> TraceArgs {
        Command::parse_from(["serve"].iter().chain(args)).traces
    }

    #[test]
    fn the_path_is_added_to_the_endpoint_but_not_to_the_complete_address() {
        let url = |args: &[&str]| parsed(args).url();
        assert_eq!(url(&[]), None);
        assert_eq!(url(&["--otlp-endpoint", ""]), None);
        let base = ["--otlp-endpoint", "http://collector:4318/"];
        assert_eq!(url(&base).as_deref(), Some("http://collector:4318/v1/traces"));
        let both = [&base[..], &["--otlp-traces-endpoint", "http://other/x"]].concat();
        assert_eq!(url(&both).as_deref(), Some("http://other/x"));
    }

    #[test]
    fn an_invalid_setting_is_an_error_only_with_an_endpoint() {
        assert!(parsed(&["--otlp-protocol", "grpc"]).collector().unwrap().is_none());
        for (flag, value, said) in [
            ("--otlp-protocol", "grpc", "\"grpc\" is not supported; use http/protobuf"),
            ("--otlp-headers", "secret", "--otlp-headers has a part that is not name=value"),
            ("--otlp-headers", "a b=c", "the header \"a b\""),
            ("--trace-sampler", "some", "unknown sampler \"some\""),
            ("--otlp-certificate", "/nowhere", "failed to read /nowhere"),
        ] {
            let args = ["--otlp-endpoint", "https://collector", flag, value];
            let error = parsed(&args).collector().unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        let error = parsed(&["--otlp-endpoint", "collector:4318"]).collector().unwrap_err();
        assert!(error.to_string().contains("http or https"), "{error}");
    }

    #[test]
    fn pairs_are_decoded() {
        let found = pairs("f", " a=b%20c , d=e=f,").unwrap();
        let expected = [("a", "b c"), ("d", "e=f")];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        for wrong in ["a", "=b", "a=%2", "a=%zz", "a=%ff"] {
            assert!(pairs("f", wrong).is_err(), "{wrong}");
        }
    }
}
