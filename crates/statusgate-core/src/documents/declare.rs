//! The macro that declares the structs of documents.

/// Declares structs of documents. `key: Type` is a required key, `key?: Type` an optional one, and
/// `key = Type` one that is the same if it is absent and if it has the default of its type.
/// `key or "function"` is a sanction with a default, which null switches off.
///
/// An absent key is left out of what is printed, and no key may be null without `x-off`: where null removes something
/// inherited, it is removed before the document is checked.
macro_rules! document {
    ($(
        $(#[$meta:meta])*
        pub struct $name:ident {
            $(
                $(#[$field_meta:meta])*
                $field:ident $(or $sanction:literal)?
                $(?: $optional:ty)? $(= $defaulted:ty)? $(: $required:ty)?
            ),* $(,)?
        }
    )*) => {$(
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "camelCase")]
        #[schemars(deny_unknown_fields)]
        $(#[$meta])*
        pub struct $name {
            $(
                $(#[$field_meta])*
                $(pub $field: $required,)?
                $(
                    #[serde(default, skip_serializing_if = "Option::is_none")]
                    pub $field: Option<$optional>,
                )?
                $(
                    #[serde(default, skip_serializing_if = "super::is_default")]
                    pub $field: $defaulted,
                )?
                $(
                    #[serde(default = $sanction)]
                    #[schemars(extend("x-off" = true))]
                    pub $field: Option<super::Sanction>,
                )?
            )*
        }
    )*};
}
