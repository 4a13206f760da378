//! The values that documents name, compared with the schemas of the objects that they are about: defaults, phases,
//! enums, the values of predicates, and what lists of conditions and checks expect.

use crate::model::Pointer;
use crate::source::tree::{At, Node, Value};

use super::super::mentioned::is_judged;
use super::compared::{Compared, Extent, value_at};
use super::pointers::Around;
use crate::policy::Defined;
use crate::policy::cel::ELEMENT;

/// Compares what a mapping of a document names. `key`: under which key it is, or the list that has it.
pub(super) fn compare(key: &str, at: At<'_>, around: &Around, defined: &[&Defined]) {
    let node = at.node();
    let list_of = |key| node.text_of(key).and_then(|text| Pointer::of_list(text).ok());
    if let Some(list) = list_of("length") {
        let list = Compared { pointer: list, defined };
        list.has_items(at.key("length"));
        list.reaches(at, Extent::Count, ["atLeast", "atMost"]);
    }
    if let Some(time) = list_of("since").filter(is_judged) {
        Compared { pointer: time, defined }.has_times(at.key("since"));
    }
    if ["condition", "oldCondition"].iter().any(|key| node.text_of(key).is_some()) {
        return around.conditions.iter().for_each(|list| of_condition(at, list, defined));
    }
    if key == "generation" {
        return generations(at.key("paths"), defined);
    }
    if node.member("element").is_some()
        && let Some(list) = list_of("list")
    {
        let is_everywhere = node.member("when").is_none();
        return Compared { pointer: list, defined }.element(at.key("element"), is_everywhere);
    }
    let own = ["path", "field", "oldField"].iter().find_map(|key| node.text_of(key));
    let list = list_of("list").or_else(|| around.list.clone());
    let key_of_member = if node.member("oldMember").is_some() { "oldMember" } else { "member" };
    let name = node.text_of(key_of_member);
    let member = name.zip(list.as_ref()).map(|(name, list)| element(list, name));
    let pointer = own.and_then(|text| Pointer::of_list(text).ok()).or(member);
    let Some(pointer) = pointer.filter(is_judged) else { return };
    let compared = Compared { pointer, defined };
    if own.is_none() {
        compared.exists(at.key(key_of_member));
    }
    for key in OTHERS.into_iter().filter(|_| name.is_some()) {
        if let Some((name, list)) = node.text_of(key).zip(list.as_ref())
            && !name.starts_with('/')
        {
            Compared { pointer: element(list, name), defined }.exists(at.key(key));
        }
    }
    compared.operands(at);
    compared.reaches(at, Extent::Number, ["atLeast", "atMost"]);
    if node.member("copyOf").is_some() {
        compared.sources(at);
    }
    match key {
        "conditions" => compared.list(at),
        "backfill" if node.member("value").is_some() => {
            let is_null = matches!(node.member("value"), Some(Node { value: Value::Null, .. }));
            let nullable = node.member("nullable").map(|node| &node.value);
            let is_written = !is_null || matches!(nullable, Some(Value::Bool(true)));
            if let Some(value) = value_at(at.key("value"))
                && compared.declared().next().is_some()
            {
                compared.keeps(&value, at.key("value"));
            }
            // A predicate may leave out the resources that reject the value.
            if node.member("when").is_none() {
                compared.each_accepts(at.key("value"), is_written);
            } else if is_written {
                compared.some_accepts(at.key("value"));
            }
        }
        "phase" => {
            if let Some(types) = compared.types_without(&["string"]) {
                let message = format!("a phase is a string, but its type in the schema is {types}");
                return at.key("path").report(message);
            }
            compared.each_accepts(at.key("default"), node.text_of("default").is_some());
            let time = node.member("transitionTime");
            let path = time.and_then(|time| time.text().or_else(|| time.text_of("path")));
            if let Some(pointer) = path.and_then(|path| Pointer::of_list(path).ok()) {
                Compared { pointer, defined }.has_times(at.key("transitionTime"));
            }
            let values = at.key("values");
            for (index, value) in node.items_of("values").iter().enumerate() {
                let name = value.text_of("phase");
                if name.is_some() && name != node.text_of("default") {
                    compared.some_accepts(values.item(index).key("phase"));
                }
            }
            let reason = node.member("reason").and_then(|reason| reason.text_of("path"));
            if let Some(pointer) = reason.and_then(|path| Pointer::of_list(path).ok()) {
                let reason = Compared { pointer, defined };
                let always = node.member("reason").and_then(|reason| reason.member("always"));
                always.into_iter().for_each(|_| reason.some_accept(at.key("reason").key("always")));
                let listed = node.items_of("values").iter().enumerate();
                let listed = listed.filter(|(_, value)| value.member("reasons").is_some());
                listed.for_each(|(index, _)| reason.some_accept(values.item(index).key("reasons")));
            }
        }
        _ => {}
    }
    for key in ["enum", "is", "isNot"].into_iter().filter(|key| node.member(key).is_some()) {
        compared.some_accept(at.key(key));
    }
    compared.types(at);
}

/// Keys of a predicate that may name another member.
const OTHERS: [&str; 5] = ["equals", "before", "atLeast", "atMost", "since"];

/// Compares what a predicate asks of a condition, or the member of a condition that it names.
fn of_condition(at: At<'_>, list: &Pointer, defined: &[&Defined]) {
    let node = at.node();
    let of = |name: &str| Compared { pointer: element(list, name), defined };
    for key in ["condition", "oldCondition"].into_iter().filter(|key| node.member(key).is_some()) {
        of("type").some_accepts(at.key(key));
    }
    for name in ["reason", "severity"] {
        let Some(wanted) = node.member(name) else { continue };
        // The empty text also holds without the member.
        if wanted.text() != Some("") && node.items_of(name).iter().all(|one| one.text() != Some(""))
        {
            of(name).exists(at.key(name));
        }
        of(name).some_accept(at.key(name));
    }
    if let Some(name) = node.text_of("member") {
        of(name).exists(at.key("member"));
    }
}

/// Compares the fields with an observed generation, a number or a text with one.
fn generations(at: At<'_>, defined: &[&Defined]) {
    let Value::List(paths) = &at.node().value else { return };
    for (index, path) in paths.iter().enumerate() {
        let pointer = path.text().and_then(|text| Pointer::of_list(text).ok());
        let Some(pointer) = pointer.filter(is_judged) else { continue };
        let field = Compared { pointer, defined };
        if field.rejects_all(&[1.into(), "1".into()]) {
            at.item(index).report("the schema rejects every generation here");
        }
    }
}

/// The pointer of a member of the elements of a list, or of the values of a map.
pub(super) fn element(list: &Pointer, member: &str) -> Pointer {
    let mut tokens = list.tokens().to_vec();
    if tokens.last().is_none_or(|last| last != "*") {
        tokens.push(ELEMENT.to_owned());
    }
    tokens.push(member.to_owned());
    Pointer::from_tokens(tokens)
}

impl Compared<'_> {
    /// Compares the fields with which a predicate compares this one.
    fn operands(&self, at: At<'_>) {
        for key in ["atLeast", "atMost", "before", "equals"] {
            let Some(text) = at.node().text_of(key).filter(|text| text.starts_with('/')) else {
                continue;
            };
            let Some(pointer) = Pointer::of_list(text).ok().filter(is_judged) else { continue };
            let (other, at) = (Compared { pointer, ..*self }, at.key(key));
            match key {
                "before" => other.has_times(at),
                "equals" => self.has_type_of(&other, at),
                _ => {
                    if let Some(types) = other.types_without(&["integer", "number"]) {
                        at.report(format!(
                            "this must be a number, but its type in the schema is {types}"
                        ));
                    }
                }
            }
        }
    }

    /// Compares what a default copies.
    fn sources(&self, at: At<'_>) {
        let sources = at.key("copyOf");
        for (index, source) in at.node().items_of("copyOf").iter().enumerate() {
            let at = sources.item(index);
            match source.text() {
                Some("/metadata/creationTimestamp" | "/metadata/deletionTimestamp") => {
                    self.has_times(at);
                }
                Some("/metadata/generation") => {
                    if let Some(types) = self.types_without(&["integer", "number"]) {
                        at.report(format!(
                            "this is a number, but the type of {} in the schema is {types}",
                            self.pointer.field()
                        ));
                    }
                }
                Some(text) => {
                    let pointer = Pointer::of_list(text).ok().filter(is_judged);
                    pointer.into_iter().for_each(|pointer| {
                        self.has_type_of(&Compared { pointer, ..*self }, at);
                    });
                }
                None => {}
            }
        }
    }

    /// Compares the element that a default adds to this list. A predicate may leave out the resources that reject it.
    fn element(&self, at: At<'_>, is_everywhere: bool) {
        let Value::Map(members) = &at.node().value else { return };
        for (key, value) in members {
            let member = Compared { pointer: element(&self.pointer, &key.name), ..*self };
            if self.declared().next().is_some() {
                member.exists(at.key(&key.name).name());
            }
            let is_constant = !matches!(value.value, Value::Map(_));
            member.each_accepts(at.key(&key.name), is_constant && is_everywhere);
        }
        let items = self.below(ELEMENT);
        let missing =
            items.required().find(|(_, name)| members.iter().all(|(key, _)| key.name != *name));
        if let Some((version, name)) = missing.filter(|_| is_everywhere) {
            at.report_with_help(
                format!("the schema of {version} requires \"{name}\" of each element, so this one is never added"),
                format!("add \"{name}\""),
            );
        }
    }

    /// Reports a path that is not a list, and members that the elements do not have.
    fn list(&self, at: At<'_>) {
        let node = at.node();
        let is_map = self.pointer.tokens().last().is_some_and(|last| last == "*");
        let wanted = if is_map { "object" } else { "array" };
        if let Some(types) = self.types_without(&[wanted]) {
            let what =
                if is_map { "the values of a map here are objects" } else { "this must be a list" };
            return at.key("path").report(format!("{what}, but its type in the schema is {types}"));
        }
        // With `parentKey`, a `*` before other names is for the elements of a list.
        let tokens = self.pointer.tokens();
        let reads_map = is_map || node.member("parentKey").is_none();
        let star = tokens.iter().position(|token| token == "*").filter(|_| reads_map);
        if let Some(above) = star.and_then(|at| tokens.get(..at)) {
            let above = Compared { pointer: Pointer::from_tokens(above.to_vec()), ..*self };
            if above.types_without(&["object"]).is_some() {
                let help = "leave out `/*`; for lists in the elements of a list, add `parentKey`";
                return at
                    .key("path")
                    .report_with_help("this is a list, and `/*` reads maps", help);
            }
        }
        let members = at.key("members");
        let mut names: Vec<(&str, At<'_>)> = Vec::new();
        if let Some(Node { value: Value::Map(entries), .. }) = node.member("members") {
            // A null removes what is inherited.
            let own = entries.iter().filter(|(_, check)| !matches!(check.value, Value::Null));
            names.extend(own.map(|(key, _)| (key.name.as_str(), members.key(&key.name).name())));
        }
        let keys = node.items_of("key").iter().enumerate();
        names
            .extend(keys.filter_map(|(index, key)| Some((key.text()?, at.key("key").item(index)))));
        if let Some(star) = tokens.iter().position(|token| token == "*") {
            let outer = Pointer::from_tokens(tokens[..star].to_vec());
            let keys = node.items_of("parentKey").iter().enumerate();
            for (index, name) in keys.filter_map(|(index, key)| Some((index, key.text()?))) {
                let key = Compared { pointer: element(&outer, name), ..*self };
                key.exists(at.key("parentKey").item(index));
            }
        }
        if let Some(name) = node.member("transitionTime").and_then(|time| time.text_of("member")) {
            names.push((name, at.key("transitionTime").key("member")));
        }
        let reason = Compared { pointer: element(&self.pointer, "reason"), ..*self };
        let types = at.key("types");
        if let Some(Node { value: Value::Map(entries), .. }) = node.member("types") {
            let kinds = Compared { pointer: element(&self.pointer, "type"), ..*self };
            for (key, kind) in entries {
                if !key.name.contains('*') {
                    kinds
                        .some_accepts_value(&key.name.as_str().into(), types.key(&key.name).name());
                }
                let reasons = types.key(&key.name).key("reasons");
                for status in ["True", "False", "Unknown"] {
                    let all = kind.member("reasons").and_then(|reasons| reasons.member(status));
                    all.into_iter().for_each(|_| reason.some_accept(reasons.key(status)));
                }
            }
        }
        for (name, at) in names {
            let member = Compared { pointer: element(&self.pointer, name), defined: self.defined };
            member.exists(at);
            if let Some(check) = node.member("members").and_then(|members| members.member(name)) {
                member.check(members.key(name), check);
            }
        }
    }

    /// Compares the checks of a member, one or a list of them.
    fn check(&self, at: At<'_>, check: &Node) {
        match &check.value {
            Value::List(items) => {
                items.iter().enumerate().for_each(|(index, item)| self.check(at.item(index), item))
            }
            _ => {
                if check.member("enum").is_some() {
                    self.some_accept(at.key("enum"));
                }
                self.types(at);
            }
        }
    }
}
