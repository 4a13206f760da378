//! The used members of an AdmissionReview, as they are on the wire.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor, value::MapAccessDeserializer};

use crate::model::{Resource, Text};

/// An AdmissionReview. `O` reads its objects.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "O: Deserialize<'de>"))]
pub(super) struct Envelope<'a, O> {
    #[serde(borrow, default)]
    pub(super) api_version: Text<'a>,
    #[serde(borrow, default)]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) request: Option<Members<Request<'a, O>>>,
}

/// A struct that can only be read from a JSON object. serde's derive also accepts a list of the
/// fields' values.
#[derive(Default)]
pub(super) struct Members<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Members<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for MembersVisitor<T> {
            type Value = Members<T>;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Members<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(members)).map(Members)
            }
        }
        deserializer.deserialize_map(MembersVisitor(PhantomData))
    }
}

/// The used members of a request; others are skipped.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "O: Deserialize<'de>"))]
pub(super) struct Request<'a, O> {
    #[serde(borrow, default)]
    pub(super) uid: Text<'a>,
    #[serde(borrow, default)]
    pub(super) kind: Members<Kind<'a>>,
    #[serde(borrow, default)]
    pub(super) resource: Members<Resource<'a>>,
    #[serde(borrow, default)]
    pub(super) sub_resource: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) name: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) namespace: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) operation: Text<'a>,
    #[serde(borrow, default)]
    pub(super) user_info: Members<User<'a>>,
    #[serde(default)]
    pub(super) object: Option<O>,
    #[serde(default)]
    pub(super) old_object: Option<O>,
    #[serde(default)]
    pub(super) dry_run: Option<bool>,
}

#[derive(Default, Deserialize)]
pub(super) struct Kind<'a> {
    #[serde(borrow, default)]
    pub(super) group: Text<'a>,
    #[serde(borrow, default)]
    pub(super) kind: Text<'a>,
}

#[derive(Default, Deserialize)]
pub(super) struct User<'a> {
    #[serde(borrow, default)]
    pub(super) username: Text<'a>,
    #[serde(borrow, default)]
    pub(super) groups: Option<Vec<Text<'a>>>,
}
