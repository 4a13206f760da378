//! A write: what the API server makes of it, and whether it accepts it.

use serde_json::Value;

use super::check::{At, Check};
use super::path::Path;
use super::verdict::{Fault, Outcome, Verdict};
use super::{MAIN_RATCHETING, STATUS_RATCHETING, Schema, decode, list, number};

/// A write of an object, by a client or by a webhook's patch.
#[derive(Clone, Copy, Debug)]
pub struct Write<'w> {
    /// The object as sent; as patched for a webhook.
    pub object: &'w Value,
    /// The stored object as it is read ([`Schema::read`]); `None` for a creation.
    pub old: Option<&'w Value>,
    /// Who made the object what it is.
    pub sender: Sender,
    /// What is written.
    pub endpoint: Endpoint,
}

/// Who made an object what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// A client: the API server prunes before it sets defaults.
    Client,
    /// The patch of a mutating webhook: the API server sets defaults, validates, and prunes at last.
    Webhook,
}

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// The object.
    Main,
    /// The subresource `status`: everything else comes from the stored object.
    Status,
}

/// Which version wrote a stored object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// This version: the API server sets the defaults of this schema.
    This,
    /// Another version of the resource, with its own defaults.
    Other,
}

/// The field of a status.
const STATUS: &str = "status";

const OBJECT: Path<'_> = Path::Root { field: "", name: "" };

impl Schema {
    /// A stored object as it is read through this version.
    ///
    /// # Errors
    /// When each read of it fails, or when that is not known.
    pub fn read(&self, stored: &Value, origin: Origin) -> Result<Value, Verdict> {
        let mut object = number::stored(stored);
        // A conversion does not drop invalid metadata.
        let drops = origin == Origin::This;
        self.clean(&mut object, drops).map_err(|fault| Verdict::new(vec![fault]))?;
        if origin == Origin::This {
            decode::set_defaults(&self.root, &mut object);
        }
        Ok(object)
    }

    /// Removes what is not stored.
    fn clean(&self, object: &mut Value, drops: bool) -> Result<(), Fault> {
        decode::prune(&self.root, object);
        decode::prune_nulls(Some(&self.root), object);
        self.coerce(object, drops)
    }

    fn coerce(&self, object: &mut Value, drops: bool) -> Result<(), Fault> {
        match object {
            Value::Object(members) => decode::coerce_members(&self.root, members, drops, &OBJECT),
            _ => Ok(()),
        }
    }

    /// The fate of a write.
    pub fn judge(&self, write: &Write<'_>) -> Outcome {
        let mut object = write.object.clone();
        if write.sender == Sender::Client
            && let Err(fault) = self.clean(&mut object, false)
        {
            let (verdict, forgiven) = (Verdict::new(vec![fault]), Vec::new());
            return Outcome { verdict, stored: object, forgiven };
        }
        decode::set_defaults(&self.root, &mut object);
        if let (Endpoint::Status, Some(old)) = (write.endpoint, write.old) {
            object = with_status(old, object);
        }
        let mut check = self.check(&object, write);
        self.check_lists(&object, write, &mut check);
        if let Some(scale) = &self.scale {
            let causes = scale.causes(&object, write.endpoint == Endpoint::Main);
            check.faults.extend(causes.into_iter().map(Fault::proven));
        }
        decode::prune(&self.root, &mut object);
        let mut object = number::stored(&object);
        check.faults.extend(self.coerce(&mut object, false).err());
        let forgiven = check.forgiven.into_iter().map(|fault| fault.cause).collect();
        Outcome { verdict: Verdict::new(check.faults), stored: object, forgiven }
    }

    fn check(&self, object: &Value, write: &Write<'_>) -> Check {
        let is_main = write.endpoint == Endpoint::Main;
        let ratchets = self.minor >= if is_main { MAIN_RATCHETING } else { STATUS_RATCHETING };
        let mut check = Check { ratchets, validates_embedded: is_main, ..Check::default() };
        let whole = At { node: &self.root, value: object, old: write.old, path: &OBJECT };
        if is_main {
            check.node(whole);
            return check;
        }
        if let (Some(node), Some(status)) = (self.root.property(STATUS), object.get(STATUS)) {
            // To ratcheting, a missing status is null.
            let old = write.old.map(|old| old.get(STATUS).unwrap_or(&Value::Null));
            let path = &Path::Root { field: STATUS, name: "" };
            check.node(At { node, value: status, old, path });
        }
        // The rules of the whole object are evaluated.
        check.rules(whole);
        for (name, node) in &self.root.properties {
            if **name != *STATUS
                && node.has_rules()
                && let Some(value) = object.get(&**name)
            {
                let mut rest = Check { ratchets, ..Check::default() };
                let old = write.old.and_then(|old| old.get(&**name));
                rest.node(At { node, value, old, path: &Path::Key(&OBJECT, name) });
                check.faults.extend(rest.faults.into_iter().filter(|fault| fault.is_rule));
            }
        }
        check
    }

    /// Duplicates in lists are forgiven if the stored object has any.
    fn check_lists(&self, object: &Value, write: &Write<'_>, check: &mut Check) {
        let (mut causes, mut before) = (Vec::new(), Vec::new());
        list::duplicates(&self.root, object, &OBJECT, &mut causes);
        if let Some(old) = write.old.filter(|_| !causes.is_empty()) {
            list::duplicates(&self.root, old, &OBJECT, &mut before);
        }
        let list = if before.is_empty() { &mut check.faults } else { &mut check.forgiven };
        list.extend(causes.into_iter().map(Fault::proven));
    }
}

/// The stored object with another status.
fn with_status(old: &Value, object: Value) -> Value {
    let mut members = old.as_object().cloned().unwrap_or_default();
    members.remove(STATUS);
    if let Value::Object(mut new) = object
        && let Some(status) = new.remove(STATUS)
    {
        members.insert(STATUS.to_owned(), status);
    }
    Value::Object(members)
}
