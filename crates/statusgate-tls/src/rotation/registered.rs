//! What the registrations trust, and since when.

use std::collections::BTreeMap;

use jiff::SignedDuration;

use super::Lifetimes;

/// The authorities in the caBundles of our registrations, as this server saw them. Times are the uptime of
/// this server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Registered {
    /// Not read yet.
    #[default]
    Unknown,
    /// There is no registration, so there is no API server that could reject a certificate.
    Nothing,
    /// The fingerprints of the authorities that every caBundle contains, and since when.
    Everywhere(BTreeMap<String, SignedDuration>),
}

impl Registered {
    /// Updates the times. `bundles` has the fingerprints of each caBundle.
    pub fn observe(&mut self, bundles: Option<&[Vec<String>]>, uptime: SignedDuration) {
        let known = match std::mem::take(self) {
            Self::Everywhere(known) => known,
            Self::Unknown | Self::Nothing => BTreeMap::new(),
        };
        *self = match bundles {
            None => Self::Unknown,
            Some([]) => Self::Nothing,
            Some([first, others @ ..]) => {
                let everywhere =
                    first.iter().filter(|id| others.iter().all(|bundle| bundle.contains(id)));
                let since = everywhere.map(|id| (id.clone(), *known.get(id).unwrap_or(&uptime)));
                Self::Everywhere(since.collect())
            }
        };
    }

    /// Starts the waits again, because the API server was unavailable: another replica may not have read
    /// the Secret since.
    pub fn restart(&mut self, uptime: SignedDuration) {
        if let Self::Everywhere(known) = self {
            known.values_mut().for_each(|since| *since = uptime);
        }
    }

    /// Whether a leaf of this authority can be served without a failed handshake. It is `urgent` if the
    /// leaf in use is not valid.
    pub(super) fn accepts(
        &self,
        authority: &str,
        urgent: bool,
        lifetimes: &Lifetimes,
        uptime: SignedDuration,
    ) -> bool {
        match self {
            Self::Unknown => urgent,
            Self::Nothing => true,
            Self::Everywhere(_) => {
                self.settled(authority, urgent, lifetimes).is_some_and(|time| time <= uptime)
            }
        }
    }

    /// When an authority has been in every caBundle for long enough. A moment is enough if it is urgent:
    /// another replica that had not read the Secret yet may just have reset the caBundles.
    pub(super) fn settled(
        &self,
        authority: &str,
        urgent: bool,
        lifetimes: &Lifetimes,
    ) -> Option<SignedDuration> {
        let Self::Everywhere(known) = self else { return None };
        let wait = if urgent { lifetimes.settle / 10 } else { lifetimes.settle };
        known.get(authority).map(|since| since.saturating_add(wait))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> SignedDuration {
        SignedDuration::from_secs(second)
    }

    #[test]
    fn an_authority_settles_when_every_bundle_has_had_it_for_a_while() {
        let lifetimes = Lifetimes::default();
        let bundle = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        let (old, both) = (bundle(&["old"]), bundle(&["new", "old"]));
        let mut registered = Registered::default();
        let accepts = |registered: &Registered, now| {
            (
                registered.accepts("new", false, &lifetimes, at(now)),
                registered.accepts("new", true, &lifetimes, at(now)),
            )
        };
        assert_eq!(accepts(&registered, 0), (false, true), "unknown");
        registered.observe(Some(&[]), at(0));
        assert_eq!(accepts(&registered, 0), (true, true), "no registration");
        registered.observe(Some(&[both.clone(), old.clone()]), at(0));
        assert_eq!(accepts(&registered, 99), (false, false), "one bundle lacks it");
        registered.observe(Some(&[both.clone(), both.clone()]), at(100));
        registered.observe(Some(&[both.clone(), both.clone()]), at(110));
        assert_eq!(accepts(&registered, 102), (false, false));
        assert_eq!(accepts(&registered, 103), (false, true));
        assert_eq!(accepts(&registered, 129), (false, true));
        assert_eq!(accepts(&registered, 130), (true, true));
        registered.restart(at(190));
        assert_eq!(
            accepts(&registered, 195),
            (false, true),
            "after the API server was unavailable"
        );
        registered.observe(Some(&[old, both.clone()]), at(230));
        registered.observe(Some(&[both.clone(), both]), at(231));
        assert_eq!(accepts(&registered, 240), (false, true), "it was removed and added again");
    }
}
