//! What rules in CEL name, compared with the schemas of the objects that they are about.

use super::super::mentioned::is_judged;
use super::compared::Compared;
use super::pointers::check;
use crate::model::Pointer;
use crate::policy::Defined;
use crate::policy::cel::{self, ELEMENT, Place, Use};
use crate::source::tree::At;

pub(super) fn compare(text: &str, at: At<'_>, defined: &[&Defined]) {
    let mentions = cel::mentions(text);
    let span = |place: Place| place.and_then(|place| cel::within(&at.node().span, text, place));
    for (path, place) in mentions.members {
        check(path.tokens(), span(place).as_ref().map_or(at, |span| at.on(span)), defined);
    }
    for (pointer, constant, place) in mentions.constants {
        if !is_judged(&pointer) {
            continue;
        }
        let span = span(place);
        let at = span.as_ref().map_or(at, |span| at.on(span));
        // The variable of a loop is an element of a list, or the key of a map.
        let above = match pointer.tokens() {
            [above @ .., last] if last == ELEMENT => Some(Pointer::from_tokens(above.to_vec())),
            _ => None,
        };
        let above = above.map(|pointer| Compared { pointer, defined });
        if above.is_none_or(|list| list.types_without(&["object"]).is_some()) {
            Compared { pointer, defined }.some_accepts_value(&constant, at);
        }
    }
    for (one, other, place) in mentions.pairs {
        if is_judged(&one) && is_judged(&other) {
            let [one, other] = [one, other].map(|pointer| Compared { pointer, defined });
            let span = span(place);
            one.has_type_of(&other, span.as_ref().map_or(at, |span| at.on(span)));
        }
    }
    for ((pointer, taken), place) in mentions.uses {
        if !is_judged(&pointer) {
            continue;
        }
        let span = span(place);
        let at = span.as_ref().map_or(at, |span| at.on(span));
        let compared = Compared { pointer, defined };
        let (types, what): (&[&str], _) = match taken {
            Use::Number => (&["integer", "number"], "a number"),
            Use::Text => (&["string"], "a text"),
            Use::Sized => (&["string", "array", "object"], "a text, list or map"),
            Use::Time => (&["string"], "a time"),
            Use::List => (&["array"], "a list"),
            Use::Map => (&["object"], "a map"),
        };
        if let Some(types) = compared.types_without(types) {
            let field = compared.pointer.field();
            at.report(format!("{field} is read as {what}, but its type in the schema is {types}"));
        } else if taken == Use::Time {
            compared.has_times(at);
        }
    }
}
