//! Structs of metrics.

/// A struct of metrics that are registered together, each with its name. The documentation of a field is
/// its help.
macro_rules! metrics {
    ($(#[$about:meta])* $visible:vis struct $name:ident {
        $($(#[doc = $help:literal])+ $of:vis $field:ident: $metric:ty = $text:literal,)*
    }) => {
        $(#[$about])*
        #[derive(Debug, Default)]
        $visible struct $name {
            $($(#[doc = $help])+ $of $field: $metric,)*
        }

        impl $name {
            pub(super) fn register(registry: &mut prometheus_client::registry::Registry) -> Self {
                let metrics = Self::default();
                $(
                    // The library adds the full stop.
                    let help = concat!($($help),+).trim().trim_end_matches('.');
                    registry.register($text, help, metrics.$field.clone());
                )*
                metrics
            }
        }
    };
}

pub(super) use metrics;
