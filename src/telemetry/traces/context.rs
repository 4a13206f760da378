//! The trace of the caller (W3C Trace Context), and whether it is sampled.

use http::HeaderMap;
use thiserror::Error;

/// The span of the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parent {
    pub(super) trace: [u8; 16],
    pub(super) span: [u8; 8],
    pub(super) flags: u8,
    /// `tracestate`, as received.
    pub(super) state: String,
}

impl Parent {
    /// Reads `traceparent` and `tracestate`. An invalid header counts as absent, as the specification
    /// demands.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let text = headers.get("traceparent")?.to_str().ok()?;
        let mut parts = text.split('-');
        let [version]: [u8; 1] = hex(parts.next()?)?;
        let (trace, span) = (hex(parts.next()?)?, hex(parts.next()?)?);
        let [flags]: [u8; 1] = hex(parts.next()?)?;
        // Later versions may add parts.
        let valid = version != 0xff && (version > 0 || parts.next().is_none());
        if !valid || trace == [0; 16] || span == [0; 8] {
            return None;
        }
        let state = headers.get("tracestate").and_then(|state| state.to_str().ok());
        let state = state.filter(|state| state.len() <= MAX_STATE).unwrap_or_default().to_owned();
        Some(Self { trace, span, flags, state })
    }

    const fn is_sampled(&self) -> bool {
        self.flags & 1 == 1
    }
}

/// The specification requires at least 512 characters.
const MAX_STATE: usize = 512;

/// Reads lower-case hexadecimal digits.
fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    if text.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

/// Which traces are exported.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampler {
    /// Whether the decision of the caller applies, if there is one.
    parent_based: bool,
    /// The share of the other traces.
    ratio: f64,
}

impl Sampler {
    /// A sampler by its name in `OTEL_TRACES_SAMPLER`, with its argument: a ratio from 0 to 1.
    ///
    /// # Errors
    /// An unknown name, or an invalid ratio.
    pub fn named(name: &str, argument: Option<&str>) -> Result<Self, SamplerError> {
        let (parent_based, root) = match name.strip_prefix("parentbased_") {
            Some(root) => (true, root),
            None => (false, name),
        };
        let ratio = match root {
            "always_on" => 1.0,
            "always_off" => 0.0,
            "traceidratio" => {
                argument.map_or(Some(1.0), |text| text.parse().ok()).unwrap_or(f64::NAN)
            }
            _ => return Err(SamplerError::Unknown(name.to_owned())),
        };
        if (0.0..=1.0).contains(&ratio) {
            Ok(Self { parent_based, ratio })
        } else {
            Err(SamplerError::BadRatio(argument.unwrap_or_default().to_owned()))
        }
    }

    pub(super) fn samples(&self, parent: Option<&Parent>, trace: [u8; 16]) -> bool {
        if let Some(parent) = parent.filter(|_| self.parent_based) {
            return parent.is_sampled();
        }
        // As other SDKs: the low 63 bits of the id, so that all services choose the same traces.
        let low = (u128::from_be_bytes(trace) as u64) >> 1;
        // The largest ids round up to 2⁶³.
        self.ratio >= 1.0 || (low as f64) < self.ratio * (1_u64 << 63) as f64
    }
}

impl Default for Sampler {
    /// `parentbased_always_on`, the default of OpenTelemetry.
    fn default() -> Self {
        Self { parent_based: true, ratio: 1.0 }
    }
}

/// An invalid sampler.
#[derive(Debug, Error)]
pub enum SamplerError {
    /// A name that OpenTelemetry does not define.
    #[error(
        "unknown sampler {0:?}; use always_on, always_off, traceidratio, parentbased_always_on, \
         parentbased_always_off or parentbased_traceidratio"
    )]
    Unknown(String),
    /// An argument that is not a number from 0 to 1.
    #[error("the ratio of the sampler is {0:?}; use a number from 0 to 1")]
    BadRatio(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const SPAN: &str = "b7ad6b7169203331";

    fn parent(header: &str) -> Option<Parent> {
        let mut headers = HeaderMap::new();
        headers.insert("traceparent", header.parse().unwrap());
        headers.insert("tracestate", "vendor=1".parse().unwrap());
        Parent::of(&headers)
    }

    #[test]
    fn a_valid_header_is_continued() {
        let found = parent(&format!("00-{TRACE}-{SPAN}-01")).unwrap();
        assert_eq!(found.trace[..2], [0x0a, 0xf7]);
        assert_eq!(found.span[6..], [0x33, 0x31]);
        assert_eq!(found.state, "vendor=1");
        assert!(found.is_sampled());
        assert!(!parent(&format!("00-{TRACE}-{SPAN}-00")).unwrap().is_sampled());
        assert!(parent(&format!("01-{TRACE}-{SPAN}-01-more")).is_some(), "a later version");
    }

    #[test]
    fn an_invalid_header_counts_as_absent() {
        let (no_trace, no_span) = ("0".repeat(32), "0".repeat(16));
        for wrong in [
            String::new(),
            "00".to_owned(),
            format!("00-{TRACE}-{SPAN}"),
            format!("00-{TRACE}-{SPAN}-01-more"),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
            format!("00-{TRACE}-{SPAN}0-01"),
            format!("00-{no_trace}-{SPAN}-01"),
            format!("00-{TRACE}-{no_span}-01"),
        ] {
            assert_eq!(parent(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_parent_decides_and_other_traces_are_sampled_by_ratio() {
        let (low, high) = ([0; 16], [0xff; 16]);
        let sampled = parent(&format!("00-{TRACE}-{SPAN}-01"));
        let unsampled = parent(&format!("00-{TRACE}-{SPAN}-00"));
        let named = |name, argument| Sampler::named(name, argument).unwrap();
        for (sampler, parent, trace, expected) in [
            (Sampler::default(), &None, high, true),
            (Sampler::default(), &sampled, high, true),
            (Sampler::default(), &unsampled, low, false),
            (named("always_on", None), &unsampled, high, true),
            (named("always_off", None), &sampled, low, false),
            (named("parentbased_always_off", None), &sampled, high, true),
            (named("parentbased_always_off", None), &None, low, false),
            (named("parentbased_traceidratio", Some("0.5")), &None, low, true),
            (named("parentbased_traceidratio", Some("0.5")), &None, high, false),
            (named("traceidratio", Some("0")), &sampled, low, false),
        ] {
            assert_eq!(sampler.samples(parent.as_ref(), trace), expected, "{sampler:?} {parent:?}");
        }
        for (name, argument) in
            [("always", None), ("traceidratio", Some("2")), ("traceidratio", Some("x"))]
        {
            assert!(Sampler::named(name, argument).is_err(), "{name} {argument:?}");
        }
    }
}
