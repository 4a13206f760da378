//! The vocabulary: JSON, objects and the input of the engine. This folder uses no other folder.

mod by_type;
mod condition;
mod id;
mod json;
mod member;
mod members;
mod object;
mod pointer;
mod quote;
mod reader;
mod subject;
mod time;
mod webhook;

pub use by_type::{ByType, SCAN_LIMIT};
pub use condition::{ConditionStatus, Conditions, MAX_ELEMENTS};
pub use id::Id;
pub use json::Json;
pub(crate) use json::{in_status, order, same, same_number};
pub use members::Members;
pub use object::{Metadata, Object, ObjectError, Unread, too_many};
pub use pointer::{Index, Pointer};
pub use quote::{quote, shortened};
pub use reader::{ReadError, Reader, read};
pub use subject::{Operation, Resource, Subject, Writer};
pub use time::{GO_ZERO_TIME, is_before_write, parse_rfc3339, same_instant};
pub use webhook::Webhook;
