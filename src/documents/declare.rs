//! The macro that declares the structs of documents.

/// Declares structs of documents. `key: Type` is a required key, `key?: Type` an optional one.
///
/// An absent key is left out of what is printed, and no key may be null: where null removes something
/// inherited, it is gone before the document is checked.
macro_rules! document {
    ($(
        $(#[$meta:meta])*
        pub struct $name:ident {
            $(
                $(#[$field_meta:meta])*
                $field:ident $(?: $optional:ty)? $(: $required:ty)?
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
            )*
        }
    )*};
}
