//! A write for which the API server does not call a webhook, because a generated match condition is false,
//! would have got no patch, no denial and no warning.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::{LazyLock, Mutex};

use cel::{Context, Program};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use statusgate_cluster::manifests::conditions::match_conditions;
use statusgate_cluster::manifests::resource::{CustomResource, ServedVersion};
use statusgate_core::engine::Action;
use statusgate_core::model::Webhook;
use statusgate_core::policy::convention::{Backfill, Filling};

use crate::case::{Case, of_kind};
use crate::settings::Kind;
use crate::statuses::with_times;
use crate::support::{LATER, T0, built_in};

/// A write that keeps most members of the stored status.
#[derive(Clone, Debug)]
struct Update {
    case: Case,
    kept: Vec<bool>,
    /// Whether nothing but times changes.
    only_times: bool,
}

fn updates() -> impl Strategy<Value = Update> {
    let kinds = [Kind::Conventions, Kind::AppCat, Kind::Pairs];
    let cases = proptest::strategy::Union::new(
        kinds.map(|kind| of_kind(kind, |settings| settings.subresource).boxed()),
    );
    let kept = prop::collection::vec(prop::bool::weighted(0.8), 16);
    let only_times = prop::bool::weighted(0.2);
    (cases, kept, only_times).prop_map(|(case, kept, only_times)| Update { case, kept, only_times })
}

impl Update {
    /// The write, with most members as they are stored.
    fn write(&self) -> Case {
        let mut case = self.case.clone();
        // A default in a list is set when the list changes. Every status that is stored after the
        // registration has it.
        if self.has_defaults_in_lists() {
            for stored in [None, case.old.clone()] {
                let write = case.write.clone().stored(stored).sent(case.old.clone());
                case.old = write.mutate(case.policies()).object().get("status").cloned();
            }
            case.write = case.write.stored(case.old.clone());
        }
        if let (true, Some(Value::Object(old))) = (self.only_times, &case.old) {
            let mut stored = old.clone();
            stored.insert("lastUpdateTime".to_owned(), T0.into());
            let stored = Value::Object(stored);
            let new = with_times(&stored, LATER);
            case.write = case.write.stored(stored.clone());
            case.old = Some(stored);
            return case.with(Some(new));
        }
        let (Some(Value::Object(old)), Some(Value::Object(new))) = (&case.old, &case.new) else {
            return case;
        };
        let mut members = old.clone();
        let names = old.keys().chain(new.keys().filter(|name| !old.contains_key(*name)));
        for (name, _) in names.zip(&self.kept).filter(|(_, kept)| !**kept) {
            match new.get(name) {
                Some(value) => members.insert(name.clone(), value.clone()),
                None => members.remove(name),
            };
        }
        members.insert("unrelated".to_owned(), "7.2.5".into());
        case.with(Some(members.into()))
    }

    fn has_defaults_in_lists(&self) -> bool {
        let group = self.group();
        let is_in_list = |default: &Backfill| {
            !matches!(default.filling, Filling::Field(..) | Filling::Absent(_))
        };
        self.case.policies().policies().iter().any(|policy| {
            let groups = policy.resources.iter().flat_map(|rule| &rule.api_groups);
            groups.filter_map(|glob| glob.exact()).any(|of| of == group)
                && policy.backfill.iter().any(is_in_list)
        })
    }

    fn group(&self) -> String {
        format!("g{}", self.case.settings.index)
    }

    /// What an omitted call of a webhook would have said. `forgotten` is a member of the status that the
    /// match conditions do not name.
    fn missed(&self, case: &Case, webhook: Webhook, forgotten: Option<&str>) -> Option<String> {
        if self.is_called(case, webhook, forgotten) {
            return None;
        }
        let said = match webhook {
            Webhook::Mutate => Some(case.mutate().patch).filter(|patch| !patch.is_null()),
            _ => {
                let mut found = case.validate().findings;
                found.retain(|finding| finding.action != Action::Audit);
                (!found.is_empty()).then(|| format!("{found:?}").into())
            }
        };
        Some(said.map(|said| format!("{said} for {:?}", case.write)).unwrap_or_default())
    }

    /// Whether the API server calls a webhook.
    fn is_called(&self, case: &Case, webhook: Webhook, forgotten: Option<&str>) -> bool {
        static EXPRESSIONS: LazyLock<Mutex<BTreeMap<String, Vec<String>>>> =
            LazyLock::new(Mutex::default);
        let review = case.write.request();
        let request = &review["request"];
        let plural = request["resource"]["resource"].as_str().unwrap();
        let key = format!("{:?} {} {plural} {webhook:?}", self.case.settings.kind, self.group());
        let mut known = EXPRESSIONS.lock().unwrap();
        let expressions = known.entry(key).or_insert_with(|| {
            let version =
                |name: &str| ServedVersion { name: name.to_owned(), status_subresource: true };
            let resource = CustomResource {
                group: self.group(),
                plural: plural.to_owned(),
                kind: "Thing".to_owned(),
                versions: ["v1", "v1beta1", "v1beta2"].map(version).to_vec(),
            };
            let other = CustomResource { plural: "others".to_owned(), ..resource.clone() };
            let conditions = match_conditions(case.policies(), &[resource, other], webhook);
            let text = |condition: &Value| condition["expression"].as_str().unwrap().to_owned();
            conditions.iter().map(text).collect()
        });
        expressions.iter().all(|expression| {
            let remembered = |line: &&str| forgotten.is_none_or(|name| !line.contains(name));
            let lines: Vec<&str> = expression.lines().filter(remembered).collect();
            lines.is_empty() || holds(&lines.join(" "), request)
        })
    }
}

fn holds(expression: &str, request: &Value) -> bool {
    thread_local! {
        static PROGRAMS: RefCell<HashMap<String, Rc<Program>>> = RefCell::default();
    }
    let program = PROGRAMS.with_borrow_mut(|programs| {
        let compile = || Rc::new(Program::compile(expression).unwrap());
        Rc::clone(programs.entry(expression.to_owned()).or_insert_with(compile))
    });
    let mut context = Context::default();
    context.add_variable("request", json!({
        "operation": request["operation"], "resource": request["resource"], "subResource": request["subResource"],
    })).unwrap();
    context.add_variable("object", &request["object"]).unwrap();
    context.add_variable("oldObject", &request["oldObject"]).unwrap();
    let value = program.execute(&context).unwrap();
    value == cel::Value::Bool(true)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1200))]

    #[test]
    fn an_omitted_call_would_have_changed_and_said_nothing(update in updates()) {
        let case = update.write();
        let missed = update.missed(&case, Webhook::Mutate, None);
        prop_assert_eq!(missed.unwrap_or_default(), "");
        for case in [case.clone(), case.mutated()] {
            let missed = update.missed(&case, Webhook::Validate, None);
            prop_assert_eq!(missed.unwrap_or_default(), "");
        }
    }
}

/// Without omitted calls the property above would hold trivially, and with a forgotten member it fails.
#[test]
fn calls_are_omitted_under_every_convention_and_a_forgotten_member_is_found() {
    let mut runner = TestRunner::deterministic();
    let mut omitted: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut found: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for _ in 0..1500 {
        let update = updates().new_tree(&mut runner).unwrap().current();
        let case = update.write();
        for webhook in [Webhook::Mutate, Webhook::Validate] {
            let key = (update.case.settings.convention.as_str(), webhook.name());
            let missed = update.missed(&case, webhook, None);
            *omitted.entry(key).or_default() += usize::from(missed.is_some());
        }
        let missed =
            update.missed(&case, Webhook::Mutate, Some("object.status != oldObject.status"));
        let missed = missed.unwrap_or_default();
        *found.entry(("status", "mutate")).or_default() += usize::from(!missed.is_empty());
        for member in ["conditions", "phase", "lastTransitionTime"] {
            for webhook in [Webhook::Mutate, Webhook::Validate] {
                let missed = update.missed(&case, webhook, Some(member)).unwrap_or_default();
                *found.entry((member, webhook.name())).or_default() +=
                    usize::from(!missed.is_empty());
            }
        }
    }
    let mut never: Vec<(&str, &str)> = Vec::new();
    for name in built_in().conventions().keys() {
        let of = |webhook: Webhook| (name.as_str(), webhook.name());
        let pairs = [of(Webhook::Mutate), of(Webhook::Validate)];
        never.extend(
            pairs.into_iter().filter(|pair| omitted.get(pair).is_none_or(|count| *count == 0)),
        );
    }
    // Its rules about the spec warn about every write while the status differs from it.
    assert_eq!(never, [("stackable", "validate")]);
    assert!(found.values().all(|count| *count > 0), "{found:?}");
}
