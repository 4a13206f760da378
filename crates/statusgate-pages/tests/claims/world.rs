//! Small worlds: a stored object and the object of a write.

use serde_json::{Map, Value, json};

const EARLY: &str = "2020-01-01T00:00:00Z";
const LATE: &str = "2025-12-31T23:59:00Z";

/// A part of an object that differs between worlds.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    path: &'static str,
    /// The values; null is absence.
    values: Vec<Value>,
}

/// The axes of a convention: every field that it names, and one that it does not.
#[derive(Clone, Debug)]
pub(crate) struct Axes(Vec<Axis>);

/// A stored object and a written one, as numbers of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct World {
    /// For each axis: the value of the stored object, and that of the written one.
    pub(crate) values: Vec<[usize; 2]>,
}

fn condition(kind: &str, status: &str, more: &Value) -> Value {
    let mut condition = json!({"type": kind, "status": status, "reason": "R", "message": "", "lastTransitionTime": EARLY});
    for (name, value) in more.as_object().into_iter().flatten() {
        if value.is_null() {
            condition.as_object_mut().unwrap().remove(name);
        } else {
            condition[name] = value.clone();
        }
    }
    condition
}

fn conditions() -> Vec<Value> {
    let ready = |status: &str, more: Value| condition("Ready", status, &more);
    vec![
        Value::Null,
        json!([]),
        json!([ready("True", json!({}))]),
        json!([ready("False", json!({"n": "one"}))]),
        json!([ready("Unknown", json!({"reason": "S", "n": "two"}))]),
        json!([ready("True", json!({"reason": null, "observedGeneration": 1}))]),
        json!([ready(
            "False",
            json!({"reason": null, "severity": "Error", "lastTransitionTime": LATE})
        )]),
        json!([ready("True", json!({"lastTransitionTime": LATE, "n": "two", "extra": 1}))]),
        json!([condition("Other", "True", &json!({"n": "one"}))]),
        json!([
            ready("False", json!({"observedGeneration": 2})),
            condition("Other", "False", &json!({}))
        ]),
        json!([{"type": "Ready"}]),
        json!([condition("New", "Unknown", &json!({}))]),
        json!([
            ready("True", json!({"n": "one"})),
            condition("Other", "True", &json!({})),
            ready("False", json!({"reason": "S", "lastTransitionTime": LATE, "n": "two"}))
        ]),
    ]
}

/// Every path that a small convention can name.
fn all_axes() -> Vec<Axis> {
    let axis = |path, values: &[Value]| Axis { path, values: values.to_vec() };
    let none = Value::Null;
    let times = [none.clone(), json!(EARLY), json!(LATE)];
    vec![
        axis("/status/phase", &[none.clone(), json!("A"), json!("B"), json!("C")]),
        axis("/status/conditions", &conditions()),
        axis("/status/observedGeneration", &[none.clone(), json!(1), json!(2), json!(3), json!(0)]),
        axis("/status/x", &[none.clone(), json!(1), json!(2), json!("text")]),
        axis("/status/d", &[none.clone(), json!(1), json!(2), json!(EARLY)]),
        axis(
            "/status/word",
            &[none.clone(), json!("one"), json!("two"), json!("other"), json!("o"), json!("")],
        ),
        axis("/status/t", &times),
        axis("/status/u", &times),
        axis("/status/time", &times),
        axis("/status/reason", &[none.clone(), json!("R"), json!("S"), json!("Z")]),
        axis(
            "/status/list",
            &[
                none.clone(),
                json!([]),
                json!([{"n": "one"}]),
                json!([{"n": "one"}, {"n": "two"}]),
                json!([{"n": "two"}]),
            ],
        ),
        axis(
            "/status/more",
            &[
                none.clone(),
                json!([condition("Ready", "True", &json!({}))]),
                json!([condition("Ready", "False", &json!({"n": "one"}))]),
            ],
        ),
        axis(
            "/status/map",
            &[
                none.clone(),
                json!({}),
                json!({"a": {"n": "one"}}),
                json!({"a": {"n": "two", "severity": "Error"}, "b": {}}),
            ],
        ),
        axis(
            "/status/parents",
            &[
                none.clone(),
                json!([{"name": "a", "more": [condition("Ready", "True", &json!({"n": "one"}))]}]),
                json!([{"name": "a", "more": [condition("Ready", "False", &json!({"n": "one"})), condition("Ready", "True", &json!({"n": "one"}))]}]),
                json!([{"name": "a"}, {"name": "b", "more": []}]),
            ],
        ),
        axis("/status/unrelated", &[json!(1), json!(2)]),
        axis("/metadata/deletionTimestamp", &[none.clone(), json!("2025-06-01T00:00:00Z")]),
        axis("/metadata/annotations", &[none, json!({"a": "b"})]),
        axis(
            "/spec",
            &[
                json!({}),
                json!({"flag": true, "parents": [1], "n": 1, "gates": [{"conditionType": "Ready"}]}),
                json!({"gates": [{"conditionType": "Ready"}]}),
                json!({"flag": true}),
                json!({"parents": [1]}),
            ],
        ),
    ]
}

impl Axes {
    /// Those that some documents name, and those that every object has.
    pub(crate) fn named_in(text: &str) -> Self {
        let mut axes = all_axes();
        axes.retain(|axis| {
            let is_always =
                ["/status/unrelated", "/metadata/deletionTimestamp"].contains(&axis.path);
            let at_end = |rest: &str| !rest.starts_with(|next: char| next.is_ascii_alphanumeric());
            is_always
                || text.match_indices(axis.path).any(|(at, path)| at_end(&text[at + path.len()..]))
        });
        Self(axes)
    }

    /// The number of statuses.
    fn statuses(&self) -> usize {
        self.0.iter().filter(|axis| axis.is_status()).map(|axis| axis.values.len()).product()
    }

    /// Worlds of writes of `/status`, at most `most`. All of them if there are not more; otherwise a sample in
    /// which every second world changes only one or two fields.
    pub(crate) fn worlds(&self, most: usize, random: &mut Random) -> Vec<World> {
        let outside: usize =
            self.0.iter().filter(|axis| !axis.is_status()).map(|axis| axis.values.len()).product();
        let all = self.statuses().checked_pow(2).and_then(|pairs| pairs.checked_mul(outside));
        if let Some(all) = all.filter(|all| *all <= most) {
            return (0..all).map(|number| self.world(number)).collect();
        }
        (0..most).map(|at| self.random(at, random)).collect()
    }

    fn world(&self, mut number: usize) -> World {
        let mut digit = |count: usize| {
            let digit = number % count;
            number /= count;
            digit
        };
        let values = self.0.iter().map(|axis| {
            let stored = digit(axis.values.len());
            [stored, if axis.is_status() { digit(axis.values.len()) } else { stored }]
        });
        World { values: values.collect() }
    }

    fn random(&self, at: usize, random: &mut Random) -> World {
        let mut values: Vec<[usize; 2]> =
            self.0.iter().map(|axis| [random.below(axis.values.len()); 2]).collect();
        let written: Vec<usize> =
            (0..self.0.len()).filter(|place| self.0[*place].is_status()).collect();
        if at.is_multiple_of(2) {
            for _ in 0..=random.below(2) {
                let place = written[random.below(written.len())];
                values[place][1] = random.below(self.0[place].values.len());
            }
        } else {
            for place in written {
                values[place][1] = random.below(self.0[place].values.len());
            }
        }
        World { values }
    }

    /// All statuses of an object that is not being deleted, as first writes; at most `most`.
    pub(crate) fn first_writes(&self, most: usize, random: &mut Random) -> Vec<World> {
        let is_deletion = |axis: &Axis| axis.path == "/metadata/deletionTimestamp";
        let count = |axis: &Axis| if is_deletion(axis) { 1 } else { axis.values.len() };
        let all: Option<usize> = self.0.iter().map(count).try_fold(1_usize, usize::checked_mul);
        let exhaustive = all.is_some_and(|all| all <= most);
        let numbers = 0..all.filter(|_| exhaustive).unwrap_or(most);
        let world = |number: usize| {
            let mut rest = number;
            let values = self.0.iter().map(|axis| {
                let count = count(axis);
                let value = if exhaustive { rest % count } else { random.below(count) };
                rest /= count;
                [if axis.is_status() { usize::MAX } else { value }, value]
            });
            World { values: values.collect() }
        };
        numbers.map(world).collect()
    }

    /// The stored object of a world.
    pub(crate) fn stored(&self, world: &World) -> Value {
        self.object(world, 0)
    }

    /// The written object of a world.
    pub(crate) fn written(&self, world: &World) -> Value {
        self.object(world, 1)
    }

    fn object(&self, world: &World, side: usize) -> Value {
        let mut object = json!({
            "apiVersion": "g/v1", "kind": "Thing", "spec": {},
            "metadata": {"name": "x", "generation": 2, "creationTimestamp": EARLY},
        });
        for (axis, values) in self.0.iter().zip(&world.values) {
            let Some(value) = axis.values.get(values[side]).filter(|value| !value.is_null()) else {
                continue;
            };
            let (parent, name) = axis.path.rsplit_once('/').unwrap();
            let mut place = &mut object;
            for token in parent.split('/').skip(1) {
                place = place
                    .as_object_mut()
                    .unwrap()
                    .entry(token)
                    .or_insert_with(|| Map::new().into());
            }
            place[name] = value.clone();
        }
        object
    }

    /// Smaller worlds: one field absent, unchanged, or without a stored value.
    pub(crate) fn smaller<'w>(&'w self, world: &'w World) -> impl Iterator<Item = World> + 'w {
        (0..world.values.len()).flat_map(move |at| {
            let [stored, written] = world.values[at];
            let options = [[0, 0], [written, written], [stored, stored], [0, written]];
            let is_status = self.0[at].is_status();
            let options = options.into_iter().filter(move |[one, other]| is_status || one == other);
            // An order of the options, so that this ends.
            let rank = |[one, other]: [usize; 2]| {
                (usize::from(one != other), usize::from(one != 0), usize::from(other != 0))
            };
            let smaller = options.filter(move |option| rank(*option) < rank([stored, written]));
            smaller.map(move |option| {
                let mut values = world.values.clone();
                values[at] = option;
                World { values }
            })
        })
    }
}

impl Axis {
    fn is_status(&self) -> bool {
        self.path.starts_with("/status")
    }
}

/// Numbers that look random, the same for the same seed.
#[derive(Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// A number below `count`.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        // The constants of Knuth's MMIX generator.
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % count
    }
}

/// Every path of the documents has an axis, so that worlds differ in every field that a convention names.
#[test]
fn worlds_have_every_field_that_a_convention_names() {
    for sketch in crate::grammar::singles() {
        let text = sketch.documents(true);
        for root in ["/status/", "/metadata/annotations", "/spec/"] {
            for (at, _) in text.match_indices(root) {
                let path: String = text[at..]
                    .chars()
                    .take_while(|letter| letter.is_ascii_alphanumeric() || "/*~".contains(*letter))
                    .collect();
                let known = all_axes()
                    .iter()
                    .any(|axis| path == axis.path || path.starts_with(&format!("{}/", axis.path)));
                assert!(known, "no axis for {path} in {}", sketch.name);
            }
        }
    }
}
