//! The flags of traces, with the environment variables of OpenTelemetry.

use std::collections::HashMap;
use std::path::PathBuf;

use anyhow::{Context, bail};
use http::{HeaderName, HeaderValue};
use opentelemetry::KeyValue;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::resource::TelemetryResourceDetector;
use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
use percent_encoding::percent_decode_str;
use tokio::runtime::Handle;

use statusgate_server::telemetry::traces;

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
    /// The provider of spans, which exports them on `runtime`; `None` without an address.
    pub(super) fn provider(&self, runtime: &Handle) -> anyhow::Result<Option<SdkTracerProvider>> {
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
        let (authorities, headers) = (authorities.transpose()?, self.headers()?);
        let exporter = traces::exporter(&url, authorities.as_deref(), headers, runtime.clone())?;
        let provider = SdkTracerProvider::builder()
            .with_sampler(self.sampler()?)
            .with_resource(self.resource()?)
            .with_batch_exporter(exporter);
        Ok(Some(provider.build()))
    }

    fn url(&self) -> Option<String> {
        let complete = given(self.otlp_traces_endpoint.as_ref()).map(str::to_owned);
        complete.or_else(|| {
            let base = given(self.otlp_endpoint.as_ref())?;
            Some(format!("{}/v1/traces", base.trim_end_matches('/')))
        })
    }

    /// The headers with their values in percent-encoding. The exporter would ignore an invalid one.
    fn headers(&self) -> anyhow::Result<HashMap<String, String>> {
        let headers = given(self.otlp_headers.as_ref()).unwrap_or_default();
        let headers: HashMap<_, _> = pairs("--otlp-headers", headers)?.into_iter().collect();
        for (name, value) in &headers {
            let value = HeaderValue::try_from(decoded("--otlp-headers", value)?);
            if HeaderName::try_from(name).is_err() || value.is_err() {
                bail!("the header {name:?} for the OTLP collector is invalid");
            }
        }
        Ok(headers)
    }

    fn sampler(&self) -> anyhow::Result<Sampler> {
        let name = given(Some(&self.trace_sampler)).unwrap_or("parentbased_always_on");
        let root = match name.strip_prefix("parentbased_").unwrap_or(name) {
            "always_on" => Sampler::AlwaysOn,
            "always_off" => Sampler::AlwaysOff,
            "traceidratio" => {
                let text = given(self.trace_sampler_arg.as_ref()).unwrap_or("1");
                let ratio = text.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
                let Some(ratio) = ratio else {
                    bail!("the ratio of the sampler is {text:?}; use a number from 0 to 1");
                };
                Sampler::TraceIdRatioBased(ratio)
            }
            _ => bail!(
                "unknown sampler {name:?}; use always_on, always_off, traceidratio, parentbased_always_on, \
                 parentbased_always_off or parentbased_traceidratio"
            ),
        };
        let parent_based = name.starts_with("parentbased_");
        Ok(if parent_based { Sampler::ParentBased(Box::new(root)) } else { root })
    }

    fn resource(&self) -> anyhow::Result<Resource> {
        let (flag, name) = ("--resource-attributes", self.service_name.clone());
        let attributes = pairs(flag, given(self.resource_attributes.as_ref()).unwrap_or_default())?;
        let attributes = attributes
            .into_iter()
            .map(|(name, value)| Ok(KeyValue::new(name, decoded(flag, &value)?)));
        Ok(Resource::builder_empty()
            .with_detector(Box::new(TelemetryResourceDetector))
            .with_attributes(attributes.collect::<anyhow::Result<Vec<_>>>()?)
            .with_service_name(name)
            .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
            .build())
    }
}

/// OpenTelemetry defines that an empty variable counts as unset.
fn given(value: Option<&String>) -> Option<&str> {
    value.map(|text| text.trim()).filter(|text| !text.is_empty())
}

/// Reads comma-separated `name=value` pairs. The message does not show the values: headers are secrets.
fn pairs(flag: &str, text: &str) -> anyhow::Result<Vec<(String, String)>> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let pairs = parts.map(|part| {
        let (name, value) = part.split_once('=')?;
        let name = name.trim_end();
        (!name.is_empty()).then(|| (name.to_owned(), value.trim_start().to_owned()))
    });
    let pairs: Option<_> = pairs.collect();
    pairs.with_context(|| format!("{flag} has a part that is not name=value"))
}

/// Decodes percent-encoding.
fn decoded(flag: &str, text: &str) -> anyhow::Result<String> {
    let text = percent_decode_str(text).decode_utf8();
    Ok(text.with_context(|| format!("{flag} has a value that is not UTF-8"))?.into_owned())
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

    #[tokio::test]
    async fn an_invalid_setting_is_an_error_only_with_an_endpoint() {
        let provider = |args: &[&str]| parsed(args).provider(&Handle::current());
        assert!(provider(&["--otlp-protocol", "grpc"]).unwrap().is_none());
        for (flag, value, said) in [
            ("--otlp-protocol", "grpc", "\"grpc\" is not supported; use http/protobuf"),
            ("--otlp-headers", "secret", "--otlp-headers has a part that is not name=value"),
            ("--otlp-headers", "a b=c", "the header \"a b\""),
            ("--otlp-headers", "a=b%0A", "the header \"a\""),
            ("--otlp-headers", "a=%ff", "--otlp-headers has a value that is not UTF-8"),
            ("--resource-attributes", "=b", "--resource-attributes has a part"),
            ("--trace-sampler", "some", "unknown sampler \"some\""),
            ("--otlp-certificate", "/nowhere", "failed to read /nowhere"),
        ] {
            let args = ["--otlp-endpoint", "http://collector", flag, value];
            let error = provider(&args).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        let error = provider(&["--otlp-endpoint", "collector:4318"]).unwrap_err();
        assert!(error.to_string().contains("http or https"), "{error}");
    }

    #[test]
    fn samplers_have_the_names_of_open_telemetry() {
        let sampler = |name: &str, ratio: &str| {
            parsed(&["--trace-sampler", name, "--trace-sampler-arg", ratio]).sampler()
        };
        for (name, expected) in [
            ("", "ParentBased(AlwaysOn)"),
            ("parentbased_always_off", "ParentBased(AlwaysOff)"),
            ("always_on", "AlwaysOn"),
            ("traceidratio", "TraceIdRatioBased(0.5)"),
            ("parentbased_traceidratio", "ParentBased(TraceIdRatioBased(0.5))"),
        ] {
            assert_eq!(format!("{:?}", sampler(name, "0.5").unwrap()), expected);
        }
        for ratio in ["2", "x", "NaN"] {
            assert!(sampler("traceidratio", ratio).is_err(), "{ratio}");
        }
    }

    #[test]
    fn attributes_of_the_process_are_decoded_and_the_flag_names_the_service() {
        let args = ["--resource-attributes", " a=b%20c , d=e=f,service.name=other,"];
        let resource = parsed(&args).resource().unwrap();
        for (name, value) in [("a", "b c"), ("d", "e=f"), ("service.name", "statusgate")] {
            assert_eq!(resource.get(&name.into()), Some(value.into()), "{name}");
        }
    }
}
