//! The macro that declares the structs of documents.

/// Declares structs of documents. `key: Type` is a required key, `key?: Type` an optional one, and
/// `key = Type` one that is the same if it is absent and if it has the default of its type.
/// `key or "function"` is a sanction with a default, which null switches off.
///
/// Absent keys are not printed. Null is an error unless the key has `x-off`. A null that removes an inherited part is
/// gone before this check.
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
