//! The members of an AdmissionReview that are used, in the shape of the wire.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor, value::MapAccessDeserializer};

use crate::model::Text;

use super::ReviewError;

/// `O` is how its objects are read.
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

/// A struct that is read from an object only. serde's derive would take a list as well, member by
/// member in the order of our own fields.
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

/// The members of a request that are used; all others are skipped.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "O: Deserialize<'de>"))]
pub(super) struct Request<'a, O> {
    #[serde(borrow, default)]
    pub(super) uid: Text<'a>,
    #[serde(borrow, default)]
    pub(super) kind: Members<Kind<'a>>,
    #[serde(borrow, default)]
    pub(super) resource: Members<Plural<'a>>,
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
    pub(super) object: Slot<O>,
    #[serde(default)]
    pub(super) old_object: Slot<O>,
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
pub(super) struct Plural<'a> {
    #[serde(borrow, default)]
    pub(super) group: Text<'a>,
    #[serde(borrow, default)]
    pub(super) version: Text<'a>,
    #[serde(borrow, default)]
    pub(super) resource: Text<'a>,
}

#[derive(Default, Deserialize)]
pub(super) struct User<'a> {
    #[serde(borrow, default)]
    pub(super) username: Text<'a>,
    #[serde(borrow, default)]
    pub(super) groups: Option<Vec<Text<'a>>>,
}

/// The place of an object: empty, filled, or misused.
#[derive(Default)]
pub(super) enum Slot<O> {
    #[default]
    Empty,
    Filled(O),
    NotAnObject,
}

impl<O> Slot<O> {
    pub(super) fn open(self, name: &'static str) -> Result<Option<O>, ReviewError> {
        match self {
            Self::Empty => Ok(None),
            Self::Filled(object) => Ok(Some(object)),
            Self::NotAnObject => Err(ReviewError::ObjectIsNone(name)),
        }
    }
}

impl<'de, O: Deserialize<'de>> Deserialize<'de> for Slot<O> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SlotVisitor<O>(PhantomData<O>);
        impl<'de, O: Deserialize<'de>> Visitor<'de> for SlotVisitor<O> {
            type Value = Slot<O>;
            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object or null")
            }
            fn visit_unit<E>(self) -> Result<Slot<O>, E> {
                Ok(Slot::Empty)
            }
            fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Slot<O>, A::Error> {
                let object = O::deserialize(MapAccessDeserializer::new(members))?;
                Ok(Slot::Filled(object))
            }
            fn visit_bool<E>(self, _: bool) -> Result<Slot<O>, E> {
                Ok(Slot::NotAnObject)
            }
            fn visit_i64<E>(self, _: i64) -> Result<Slot<O>, E> {
                Ok(Slot::NotAnObject)
            }
            fn visit_u64<E>(self, _: u64) -> Result<Slot<O>, E> {
                Ok(Slot::NotAnObject)
            }
            fn visit_f64<E>(self, _: f64) -> Result<Slot<O>, E> {
                Ok(Slot::NotAnObject)
            }
            fn visit_str<E>(self, _: &str) -> Result<Slot<O>, E> {
                Ok(Slot::NotAnObject)
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(
                self,
                mut items: A,
            ) -> Result<Slot<O>, A::Error> {
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Slot::NotAnObject)
            }
        }
        deserializer.deserialize_any(SlotVisitor(PhantomData))
    }
}
