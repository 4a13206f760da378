//! Programs as CEL: for Flux, Crossplane's function-auto-ready and kro.

mod literal;
mod part;

pub(super) use literal::quoted;
use literal::{is_identifier, is_in, is_text, literal, not_in, number};
use part::{Part, Shape, add, joined};

use super::pattern::re2;
use super::{relation, sign};
use statusgate_core::language::formula::{Bound, Formula, ListPlace, Question};
use statusgate_core::model::{Index, Pointer};
use statusgate_core::schema::Schema;

/// Whether CEL can ask this.
pub(super) fn can_ask(question: &Question) -> bool {
    match question {
        Question::Foreign(_) => false,
        Question::Matches { pattern, .. } => re2(pattern).is_some(),
        _ => true,
    }
}

/// How a tool shows an object to CEL, and which fields the object can have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cel<'s> {
    /// The variable with the object. It is empty if the fields of the object are variables.
    pub(super) root: &'s str,
    /// Whether the tool checks types. Then only a `dyn` value can be compared with null.
    pub(super) typed: bool,
    /// The schema of the object.
    pub(super) schema: &'s Schema,
}

impl Cel<'_> {
    /// Whether an object is not being deleted and the formula holds.
    pub(super) fn expression(&self, formula: &Formula) -> String {
        let writer = FormulaWriter { cel: *self, lists: Vec::new(), place: &[], inner: &[] };
        let mut parts = vec![Part::call(format!("!has({})", self.metadata("deletionTimestamp")))];
        let lists = lists_of(formula).into_iter().filter_map(|list| match list {
            ListPlace::At(path) => Some(path.tokens()),
            ListPlace::OfElement => None,
        });
        let status = &["status".to_owned()][..];
        if formula.needs(status) {
            add(&mut parts, self.reach(self.root, status).0);
        }
        for list in lists.filter(|list| formula.needs(list)) {
            add(&mut parts, self.list(self.root, list).0);
        }
        let rest = writer.bound(formula, &parts);
        add(&mut parts, rest);
        joined(parts, " && ")
    }

    fn metadata(&self, name: &str) -> String {
        let dot = if self.root.is_empty() { "" } else { "." };
        format!("{}{dot}metadata.{name}", self.root)
    }

    /// A value that can be compared with any other.
    fn any(&self, value: &str) -> String {
        if self.typed { format!("dyn({value})") } else { value.to_owned() }
    }

    /// What must hold so that a field can be read, and the field.
    fn reach(&self, root: &str, names: &[String]) -> (Vec<Part>, String) {
        let (mut guards, mut at) = (Vec::new(), root.to_owned());
        for (depth, name) in names.iter().enumerate() {
            let is_always_there =
                depth == 0 && root == self.root && (root.is_empty() || name == "metadata");
            if let Some(index) = Index::of(name) {
                let (there, item) = self.item(&at, index, name);
                guards.push(Part::test(there));
                at = item;
                continue;
            }
            // Of two paths of a phase, one can be inside the other.
            if depth > 1 && names.first().is_some_and(|first| first != "metadata") {
                let (parent, map) = (self.any(&at), self.any("{}"));
                guards.push(Part::test(format!("type({parent}) == type({map})")));
            }
            if !is_identifier(name) {
                let (parent, key) = (self.any(&at), quoted(name));
                guards.push(Part::test(format!("{key} in {parent}")));
                at = format!("{parent}[{key}]");
                continue;
            }
            at = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
            if !is_always_there {
                guards.push(Part::call(format!("has({at})")));
            }
        }
        (guards, at)
    }

    /// Whether a list has an item, or a map the key with its name, and the item.
    fn item(&self, at: &str, index: Index, name: &str) -> (String, String) {
        let [list, map] = ["[]", "{}"].map(|of| self.any(of));
        let (at, key) = (self.any(at), quoted(name));
        let (least, position) = match index {
            Index::At(index) => (index, index.to_string()),
            Index::Last => (0, format!("size({at}) - 1")),
        };
        let in_map = format!("type({at}) == type({map}) && {key} in {at}");
        let is_list = format!("type({at}) == type({list})");
        let there = format!("({is_list} ? size({at}) > {least} : {in_map})");
        (there, format!("({is_list} ? {at}[{position}] : {at}[{key}])"))
    }

    fn field(&self, path: &Pointer) -> (Vec<Part>, String) {
        self.reach(self.root, path.tokens())
    }

    /// What must hold so that the elements of a list can be read, and the list.
    fn list(&self, root: &str, names: &[String]) -> (Vec<Part>, String) {
        let (mut guards, at) = self.reach(root, names);
        let (value, list) = (self.any(&at), self.any("[]"));
        guards.push(Part::test(format!("type({value}) == type({list})")));
        (guards, at)
    }

    /// How the number at a place that is there relates to `metadata.generation`.
    fn observed(&self, at: &str, relation: Option<&str>) -> Vec<String> {
        let newest = self.metadata("generation");
        let mut tests = vec![format!("has({newest})"), format!("type({at}) == type({newest})")];
        tests.extend(relation.map(|relation| format!("{at} {relation} {newest}")));
        tests
    }
}

/// Writes formulas about one object, or about one element of a list in it.
struct FormulaWriter<'w> {
    cel: Cel<'w>,
    /// The lists that are in variables, without conditions that observed an older generation.
    lists: Vec<&'w ListPlace>,
    /// Where the conditions of the element are in the object. Empty if it is about the object.
    place: &'w [String],
    /// The names from the element to its conditions.
    inner: &'w [String],
}

/// Each RFC 3339 time matches this.
const DATE: &str = "^[0-9]{4}-[0-9]{2}-[0-9]{2}T";

/// The variable of an element.
const ELEMENT: &str = "p";

impl<'w> FormulaWriter<'w> {
    /// A formula in which each list that several questions ask is read once. A list of one value binds a
    /// variable in every implementation of CEL.
    fn bound(&self, formula: &'w Formula, known: &[Part]) -> Vec<Part> {
        let mut lists = lists_of(formula);
        // The questions about an element have a writer of their own.
        lists.retain(|list| matches!(list, ListPlace::At(_)) == self.place.is_empty());
        let Some(list) = lists.iter().copied().find(|list| {
            lists.iter().filter(|other| *other == list).count() > 1 && !self.lists.contains(list)
        }) else {
            return self.all(formula, &mut known.to_vec());
        };
        let (mut guards, at) = self.conditions(list);
        guards.retain(|guard| !known.contains(guard));
        let mut kept = vec!["has(e.type)".to_owned()];
        kept.extend(self.fresh(list));
        let mut found = format!("{at}.filter(e, {})", kept.join(" && "));
        if !guards.is_empty() {
            found = format!("{} ? {found} : []", joined(guards, " && "));
        }
        let lists = self.lists.iter().copied().chain([list]).collect();
        let inner = Self { lists, ..*self };
        let (name, body) = (inner.variable(list), Part::all(inner.bound(formula, known)).bare());
        vec![Part::call(format!("[{found}].exists({name}, {body})"))]
    }

    fn variable(&self, list: &ListPlace) -> String {
        let at = self.lists.iter().position(|known| *known == list).unwrap_or_default();
        let name = if self.place.is_empty() { "c" } else { "d" };
        if at == 0 { name.to_owned() } else { format!("{name}{at}") }
    }

    /// The parts of a formula without those that are known.
    fn all(&self, formula: &'w Formula, known: &mut Vec<Part>) -> Vec<Part> {
        let parts = match formula {
            Formula::All(parts) => {
                return parts.iter().flat_map(|part| self.all(part, known)).collect();
            }
            Formula::Any(parts) if parts.is_empty() => vec![Part::call("false".to_owned())],
            Formula::Any(parts) => {
                vec![Part::group(&joined(parts.iter().map(|part| self.one(part, known)), " || "))]
            }
            Formula::Not(part) => match self.one(part, known) {
                Part { text, shape: Shape::Test } => vec![Part::test(format!("!({text})"))],
                Part { text, .. } => vec![Part::test(format!("!{text}"))],
            },
            Formula::Ask(question) => self.question(question),
            Formula::Some { outer, inner, of } => {
                let (mut parts, at) = self.cel.list(self.cel.root, outer.tokens());
                let place = [outer.tokens(), &["*".to_owned()], inner].concat();
                let element =
                    FormulaWriter { cel: self.cel, lists: Vec::new(), place: &place, inner };
                let holds = Part::all(element.bound(of, known)).bare();
                parts.push(Part::call(format!("{at}.exists({ELEMENT}, {holds})")));
                parts
            }
        };
        let before = known.len();
        add(known, parts);
        known.get(before..).unwrap_or_default().to_vec()
    }

    fn one(&self, formula: &'w Formula, known: &[Part]) -> Part {
        Part::all(self.all(formula, &mut known.to_vec()))
    }

    fn question(&self, question: &Question) -> Vec<Part> {
        let cel = &self.cel;
        let with = |(mut parts, at): (Vec<Part>, String), tests: &dyn Fn(&str) -> Vec<String>| {
            parts.extend(tests(&at).into_iter().map(Part::test));
            parts
        };
        match question {
            Question::Present(list, kind) => self.exists(self.conditions(list), &[is_type(kind)]),
            Question::Stale(list) => {
                let is_older = cel.observed("e.observedGeneration", Some("<"));
                let tests = [&["has(e.observedGeneration)".to_owned()][..], &is_older].concat();
                self.exists(self.conditions(list), &tests)
            }
            Question::Condition { list, kind, member, among, negated } => {
                let member = member_is(member, among, *negated);
                if self.lists.contains(&list) {
                    let bound = (Vec::new(), self.variable(list));
                    return self.exists(bound, &[format!("e.type == {}", quoted(kind)), member]);
                }
                let tests: Vec<String> =
                    [is_type(kind), member].into_iter().chain(self.fresh(list)).collect();
                self.exists(self.conditions(list), &tests)
            }
            Question::Value { path, among, negated, text } => {
                let and = |first: &str| {
                    std::iter::once(first.to_owned()).chain(among.iter().map(literal))
                };
                with(cel.field(path), &|at| match (negated, text) {
                    (false, _) => vec![is_in(at, among.iter().map(literal))],
                    (true, true) => vec![is_text(at), not_in(at, and("''"))],
                    (true, false) => vec![not_in(&cel.any(at), and("null"))],
                })
            }
            Question::IsText(path) => with(cel.field(path), &|at| vec![is_text(at)]),
            Question::Same(one, other, same) => {
                let (mut parts, one) = cel.field(one);
                let equal = if *same { "==" } else { "!=" };
                parts.extend(with(cel.field(other), &|other| {
                    let (one, other) = (cel.any(&one), cel.any(other));
                    vec![
                        format!("{one} != null"),
                        format!("{other} != null"),
                        format!("{one} {equal} {other}"),
                    ]
                }));
                parts
            }
            Question::Compare(path, how, bound) => {
                let is_number = |at: &str| format!("type({}) in [type(1), type(1.0)]", cel.any(at));
                let (mut parts, other) = match bound {
                    Bound::Number(bound) => (Vec::new(), number(bound)),
                    Bound::At(path) => {
                        let (mut parts, other) = cel.field(path);
                        parts.push(Part::test(is_number(&other)));
                        (parts, other)
                    }
                };
                let sign = sign(*how);
                parts.extend(with(cel.field(path), &|at| {
                    vec![is_number(at), format!("{at} {sign} {other}")]
                }));
                parts
            }
            Question::Set(path) => with(cel.field(path), &|at| {
                vec![not_in(&cel.any(at), ["null", "''", "[]", "{}"].map(str::to_owned))]
            }),
            Question::Matches { path, pattern, negated } => {
                let pattern = quoted(&re2(pattern).unwrap_or_default());
                let not = if *negated { "!" } else { "" };
                with(cel.field(path), &|at| {
                    let at = cel.any(at);
                    vec![is_text(&at), format!("{not}{at}.matches({pattern})")]
                })
            }
            Question::Unsure(one, other) => {
                let (mut parts, one) = cel.field(one);
                parts.extend(with(cel.field(other), &|other| {
                    let (one, other) = (cel.any(&one), cel.any(other));
                    let is_date = |at: &str| format!("{at}.matches('{DATE}')");
                    let is_other = format!("{one} != {other}");
                    vec![is_text(&one), is_text(&other), is_other, is_date(&one), is_date(&other)]
                }));
                parts
            }
            Question::Longer(path, least) => with(cel.field(path), &|at| {
                let (any, list) = (cel.any(at), cel.any("[]"));
                vec![format!("type({any}) == type({list})"), format!("size({any}) >= {least}")]
            }),
            Question::Observed { path, among, text: false } => {
                with(cel.field(path), &|at| cel.observed(at, relation(among)))
            }
            Question::Observed { path, among, text: true } => with(cel.field(path), &|at| {
                let newest = cel.metadata("generation");
                let mut tests = vec![
                    format!("has({newest})"),
                    is_text(at),
                    format!("{at}.matches('^(0|-?[1-9][0-9]{{0,17}})$')"),
                ];
                tests.extend(
                    relation(among).map(|relation| format!("int({at}) {relation} {newest}")),
                );
                tests
            }),
            // Only a program without such questions is written.
            Question::Foreign(_) => vec![Part::call("false".to_owned())],
        }
    }

    fn exists(&self, (mut parts, list): (Vec<Part>, String), tests: &[String]) -> Vec<Part> {
        parts.push(Part::call(format!("{list}.exists(e, {})", tests.join(" && "))));
        parts
    }

    fn conditions(&self, list: &ListPlace) -> (Vec<Part>, String) {
        match list {
            ListPlace::At(path) => self.cel.list(self.cel.root, path.tokens()),
            ListPlace::OfElement => self.cel.list(ELEMENT, self.inner),
        }
    }

    /// That a condition did not observe an older generation.
    fn fresh(&self, list: &ListPlace) -> Option<String> {
        let path = list.member("observedGeneration", self.place);
        self.cel.schema.pruned(&path).is_none().then(|| {
            let behind = self.cel.observed("e.observedGeneration", Some("<")).join(" && ");
            format!("!(has(e.observedGeneration) && {behind})")
        })
    }
}

/// The lists of the different questions about conditions.
fn lists_of(formula: &Formula) -> Vec<&ListPlace> {
    let mut asked: Vec<(&Question, &ListPlace)> = Vec::new();
    for question in formula.questions() {
        if let Question::Condition { list, .. } = question
            && !asked.iter().any(|(known, _)| *known == question)
        {
            asked.push((question, list));
        }
    }
    asked.into_iter().map(|(_, list)| list).collect()
}

fn is_type(kind: &str) -> String {
    format!("has(e.type) && e.type == {}", quoted(kind))
}

/// That a member of the condition `e` is one of these texts, or another text.
fn member_is(member: &str, among: &[String], negated: bool) -> String {
    let (at, texts) = (format!("e.{member}"), among.iter().map(|text| quoted(text)));
    if negated {
        format!("has({at}) && {} && {}", is_text(&at), not_in(&at, texts))
    } else if among.iter().any(String::is_empty) {
        format!("(!has({at}) || {})", is_in(&at, texts))
    } else {
        format!("has({at}) && {}", is_in(&at, texts))
    }
}
