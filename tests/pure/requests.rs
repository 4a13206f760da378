//! What holds for whole requests, and for damaged bytes.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;
use statusgate_core::admit::{Reply, admit};
use statusgate_core::model::Webhook;
use statusgate_core::policy::PolicySet;

use crate::case::{Case, cases};
use crate::support::{NOW, examples};

fn request(case: &Case, operation: &str, subresource: &str) -> Vec<u8> {
    let mut review = case.write.request();
    let request = &mut review["request"];
    request["operation"] = operation.into();
    request["subResource"] = subresource.into();
    match operation {
        "DELETE" => request["object"] = Value::Null,
        "CREATE" => request["oldObject"] = Value::Null,
        _ => {}
    }
    review.to_string().into_bytes()
}

fn answer(policies: &PolicySet, webhook: Webhook, body: &[u8]) -> Reply {
    admit(policies, webhook, body, NOW.parse().unwrap(), |_, verdict| {
        assert!(!verdict.patch_failed, "a patch always applies");
    })
}

fn is_allowed(reply: &Reply) -> bool {
    let review: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    reply.status == 200 && review["response"]["allowed"] == true
}

const WEBHOOKS: [Webhook; 2] = [Webhook::Mutate, Webhook::Validate];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_deletion_is_always_allowed(case in cases(), webhook in select(&WEBHOOKS[..])) {
        for subresource in ["", "status"] {
            let reply = answer(case.policies(), webhook, &request(&case, "DELETE", subresource));
            prop_assert!(is_allowed(&reply), "{}", String::from_utf8_lossy(&reply.body));
        }
    }

    /// With a status subresource, no write of the main resource is judged. Without one, every write of an
    /// object that is being deleted passes.
    #[test]
    fn a_finalizer_can_always_be_removed(mut case in cases()) {
        case.write = case.write.deleting();
        let reply = answer(case.policies(), Webhook::Validate, &request(&case, "UPDATE", ""));
        prop_assert!(is_allowed(&reply), "{}", String::from_utf8_lossy(&reply.body));
    }

    #[test]
    fn equal_reviews_get_equal_bytes(case in cases(), operation in select(vec!["CREATE", "UPDATE", "CONNECT"]), subresource in select(vec!["", "status", "scale"])) {
        let body = request(&case, operation, subresource);
        for webhook in WEBHOOKS {
            let one = answer(case.policies(), webhook, &body);
            prop_assert_eq!(one.status, 200, "{}", String::from_utf8_lossy(&one.body));
            prop_assert_eq!(one, answer(case.policies(), webhook, &body));
        }
    }
}

/// A change to a text at a place between 0 and 1.
#[derive(Clone, Debug)]
enum Damage {
    Set(f64, u8),
    Cut(f64),
    Drop(f64, usize),
    Repeat(f64, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let place = || 0.0..1.0f64;
    prop_oneof![
        4 => (place(), any::<u8>()).prop_map(|(at, byte)| Damage::Set(at, byte)),
        4 => (place(), select(b"\"{}[],:0-eE\\u".as_slice())).prop_map(|(at, byte)| Damage::Set(at, byte)),
        1 => place().prop_map(Damage::Cut),
        2 => (place(), 1..200usize).prop_map(|(at, length)| Damage::Drop(at, length)),
        2 => (place(), 1..200usize).prop_map(|(at, length)| Damage::Repeat(at, length)),
    ]
}

fn damaged(mut bytes: Vec<u8>, damages: &[Damage]) -> Vec<u8> {
    for damage in damages {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            clippy::cast_sign_loss,
            reason = "a place in a few kilobytes"
        )]
        let place = |at: f64| (at * bytes.len() as f64) as usize;
        let part = |at: f64, length: usize| place(at)..(place(at) + length).min(bytes.len());
        match *damage {
            Damage::Set(at, byte) => {
                let at = place(at);
                if let Some(place) = bytes.get_mut(at) {
                    *place = byte;
                }
            }
            Damage::Cut(at) => bytes.truncate(place(at)),
            Damage::Drop(at, length) => drop(bytes.drain(part(at, length))),
            Damage::Repeat(at, length) => {
                let part = part(at, length);
                bytes.splice(part.start..part.start, bytes[part].to_vec());
            }
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_bytes_are_malformed(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for webhook in WEBHOOKS {
            prop_assert_eq!(answer(examples(), webhook, &bytes).status, 400);
        }
    }

    #[test]
    fn a_damaged_review_gets_an_answer(damages in prop::collection::vec(damage(), 1..4)) {
        let valid = include_bytes!("../fixtures/reviews/repair/crossplane-composite-first-request/review.json");
        let bytes = damaged(valid.to_vec(), &damages);
        for webhook in WEBHOOKS {
            let reply = answer(examples(), webhook, &bytes);
            prop_assert!(reply.status == 200 || reply.status == 400, "{}", reply.status);
            if reply.status == 200 {
                prop_assert!(serde_json::from_slice::<Value>(&reply.body).is_ok());
            }
        }
    }
}
