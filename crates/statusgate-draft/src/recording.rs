//! The writes of one resource.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use statusgate_core::model::{Json, Object, Resource, Writer};
use statusgate_core::request::{Request, Served};
use statusgate_core::source::{Identity, Manifest, Manifests, ObjectKey, Stored};

/// The writes of a resource that count. Time and memory of a draft are proportional to them.
pub const MAX_WRITES: usize = 20_000;

/// The writes of one object that count: the first ones. More of one object prove nothing more.
pub const MAX_WRITES_OF_OBJECT: usize = 500;

/// The recorded writes of one resource, the writes of each object one after the other.
#[derive(Debug, Default)]
pub struct Recording<'m> {
    /// The API group.
    pub group: String,
    /// The plural.
    pub plural: String,
    /// The kind.
    pub kind: String,
    /// The API versions that were written.
    pub versions: BTreeSet<String>,
    /// Whether the status is written through `/status`.
    pub has_subresource: bool,
    /// How many objects were written.
    pub objects: u32,
    /// The writes that were left out because of a bound.
    pub left_out: usize,
    pub(crate) writes: Vec<Write<'m>>,
    /// The index of each object, and its writes.
    known: HashMap<(ObjectKey<'m>, Option<&'m str>), (u32, usize)>,
}

/// One write.
#[derive(Clone, Debug)]
pub(crate) struct Write<'m> {
    /// The index of the object.
    pub(crate) object: u32,
    pub(crate) request: Request<'m>,
}

impl<'m> Recording<'m> {
    /// The recordings in some manifests, by group and plural. `served`: how a cluster serves a kind, for manifests that do
    /// not record a request. In a sequence, each object is the stored one of the next.
    pub fn all(
        manifests: &'m Manifests<'_>,
        is_sequence: bool,
        served: impl Fn(&Identity) -> Served,
    ) -> Vec<Self> {
        let mut stored = Stored::new(HashMap::new(), is_sequence);
        let mut all: BTreeMap<(String, String), Self> = BTreeMap::new();
        for manifest in manifests.iter() {
            let request = Request::of(&manifest, stored.of(&manifest), Writer::default());
            let identity = request.identity;
            let (plural, has_subresource) = match request.recorded {
                Some(to) if !matches!(&*to.subresource, "status" | "") => continue,
                Some(to) => (to.resource.resource.to_string(), to.subresource == "status"),
                None => {
                    let served = served(identity);
                    (served.plural, served.has_status.unwrap_or(true))
                }
            };
            let group = identity.group().to_owned();
            let of = all.entry((group.clone(), plural.clone())).or_default();
            (of.group, of.plural) = (group, plural);
            of.add(&manifest, request, has_subresource);
        }
        let mut recordings: Vec<Self> = all.into_values().filter(|of| of.objects > 0).collect();
        for recording in &mut recordings {
            recording.writes.sort_by_key(|write| write.object);
        }
        recordings
    }

    fn add(&mut self, manifest: &Manifest<'m>, request: Request<'m>, has_subresource: bool) {
        let written = status(request.object);
        // The second: a write of the main resource that changes the rest of the object.
        if written.as_ref().is_none_or(Json::is_empty) || request.old.and_then(status) == written {
            return;
        }
        let key = (manifest.key(), manifest.uid());
        let (object, count) = self.known.entry(key).or_insert((self.objects, 0));
        *count += 1;
        if *count > MAX_WRITES_OF_OBJECT || self.writes.len() == MAX_WRITES {
            self.left_out += 1;
            return;
        }
        self.objects = self.objects.max(*object + 1);
        self.kind.clone_from(&request.identity.kind);
        self.versions.insert(request.identity.version().to_owned());
        self.has_subresource |= has_subresource;
        self.writes.push(Write { object: *object, request });
    }

    /// `PLURAL.GROUP`, as the definition of the resource is named.
    pub fn name(&self) -> String {
        Resource::new(&self.group, "", &self.plural).name()
    }

    /// The object and the stored object of the last write of the last object, as JSON texts.
    pub fn last(&self) -> Option<(&'m str, &'m str)> {
        let Request { object, old, .. } = self.writes.last()?.request;
        Some((object, old.unwrap_or_default()))
    }
}

/// The status of an object.
pub(crate) fn status(object: &str) -> Option<Json<'_>> {
    Object::parse(object).ok()?.status
}
