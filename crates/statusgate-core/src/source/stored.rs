//! The stored object of each write.

use std::collections::HashMap;

use super::{Manifest, Members, Record};

/// Group, kind, namespace and name. Without the version: all versions show the same object.
pub type ObjectKey<'m> = (&'m str, &'m str, &'m str, &'m str);

/// Finds the stored object of each write, in the order of the writes.
#[derive(Debug, Default)]
pub struct Stored<'m> {
    known: HashMap<ObjectKey<'m>, Manifest<'m>>,
    is_sequence: bool,
}

impl<'m> Stored<'m> {
    /// With known objects. In a sequence, each object is the stored one of the next with its key. Recordings of one version
    /// of an object after the other are always a sequence.
    pub const fn new(known: HashMap<ObjectKey<'m>, Manifest<'m>>, is_sequence: bool) -> Self {
        Self { known, is_sequence }
    }

    /// The stored object of a write. The written one is that of the next write.
    pub fn of(&mut self, manifest: &Manifest<'m>) -> Option<Manifest<'m>> {
        if let Some(Record::Review(_)) = manifest.record {
            return manifest.old();
        }
        let in_sequence = manifest.record.is_some_and(Record::is_in_sequence);
        if !self.is_sequence && !in_sequence {
            return self.known.get(&manifest.key()).copied();
        }
        // An object that was deleted and created again is another one.
        let known = self.known.insert(manifest.key(), *manifest);
        known.filter(|old| match (old.uid(), manifest.uid()) {
            (Some(old), Some(new)) => old == new,
            _ => true,
        })
    }
}

impl<'m> Manifest<'m> {
    /// What identifies the object in a cluster.
    pub fn key(&self) -> ObjectKey<'m> {
        let identity = self.identity;
        (identity.group(), &identity.kind, &identity.namespace, &identity.name)
    }

    /// `metadata.uid`, as JSON text.
    pub fn uid(&self) -> Option<&'m str> {
        Members::parse(Members::parse(self.text)?.get("metadata")?)?.get("uid")
    }
}
