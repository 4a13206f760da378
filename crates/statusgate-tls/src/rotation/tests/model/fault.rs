//! What may go wrong in the model.

use std::rc::Rc;

use super::*;

/// What may go wrong, once, at any moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// Somebody deletes the Secret.
    Delete,
    /// Somebody makes the Secret invalid.
    Garble,
    /// A replica ends and starts again.
    Crash,
    /// The clock of one replica jumps by this many seconds.
    Jump(i64),
    /// The clock of everything jumps by this many seconds.
    JumpAll(i64),
    /// No replica can read or write for this many seconds.
    Outage(i64),
    /// One replica cannot read or write for this many seconds, and serves.
    Partition(i64),
    /// Somebody removes the key of the authority, to rotate now.
    Disclose,
}

impl State {
    /// The states after a fault; none if it cannot happen now.
    pub(super) fn fault(&self, fault: Fault) -> Vec<Self> {
        // If no running replica has the Secret in memory, its loss cannot be hidden.
        let is_remembered = self.replicas.iter().any(|replica| replica.served.is_some());
        match fault {
            Fault::Delete if is_remembered => {
                vec![Self { secret: None, version: self.version + 1, ..self.clone() }]
            }
            Fault::Garble if is_remembered => {
                vec![Self { secret: Some(None), version: self.version + 1, ..self.clone() }]
            }
            Fault::Delete | Fault::Garble => Vec::new(),
            Fault::Crash => {
                let crash = |index| self.with(index, |replica| *replica = Replica::default());
                let other_remembers = |index: &usize| self.replicas[1 - index].served.is_some();
                (0..2).filter(other_remembers).map(crash).collect()
            }
            // A replica that starts with a wrong clock has no valid leaf to keep.
            Fault::Jump(by) => {
                let Replica { served, registered, .. } = &self.replicas[0];
                let is_installed = self.time > 0 && matches!(registered, Registered::Everywhere(_));
                let runs = is_installed && served.is_some();
                let jump = runs.then(|| self.with(0, |replica| replica.offset += by));
                jump.into_iter().collect()
            }
            Fault::JumpAll(by) => {
                let mut state = Self { offset: self.offset + by, ..self.clone() };
                state.replicas.iter_mut().for_each(|replica| replica.offset += by);
                vec![state]
            }
            Fault::Outage(seconds) => {
                vec![Self { down_until: self.time + seconds, ..self.clone() }]
            }
            Fault::Partition(seconds) => {
                let partition = (self.time, self.time + seconds);
                let Replica { lease, registered, .. } = &self.replicas[0];
                // It has a Lease within milliseconds after it starts.
                let runs = !lease.is_empty() && matches!(registered, Registered::Everywhere(_));
                runs.then(|| Self { partition, ..self.clone() }).into_iter().collect()
            }
            Fault::Disclose => {
                let Some(Some(summary)) = &self.secret else { return Vec::new() };
                // During the installation, the registrations have no authority yet.
                if self.time == 0 {
                    return Vec::new();
                }
                let summary =
                    Rc::new(SecretSummary { can_sign: false, ..summary.as_ref().clone() });
                let version = self.version + 1;
                vec![Self { secret: Some(Some(summary)), version, ..self.clone() }]
            }
        }
    }
}
