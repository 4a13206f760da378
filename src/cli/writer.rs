//! The user of a write.

use statusgate_core::model::Writer;

/// The writer as the API server sees a user: it adds the groups of a service account if there are no
/// groups, and the group of all authenticated users.
pub(super) fn writer<'a>(user: &'a str, groups: &'a [String]) -> Writer<'a> {
    let mut groups: Vec<_> = groups.iter().map(|group| group.as_str().into()).collect();
    let account = user.strip_prefix("system:serviceaccount:");
    if let Some((namespace, _)) = account.and_then(|account| account.split_once(':'))
        && groups.is_empty()
    {
        groups.push("system:serviceaccounts".into());
        groups.push(format!("system:serviceaccounts:{namespace}").into());
    }
    if !user.is_empty() && user != "system:anonymous" {
        groups.push("system:authenticated".into());
    }
    Writer { user: user.into(), groups }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_account_is_in_its_groups() {
        let groups = |user: &str, given: &[&str]| {
            let given: Vec<String> = given.iter().map(|group| (*group).to_owned()).collect();
            writer(user, &given).groups.join(" ")
        };
        assert_eq!(
            groups("system:serviceaccount:ns:name", &[]),
            "system:serviceaccounts system:serviceaccounts:ns system:authenticated"
        );
        assert_eq!(groups("jane", &["admins"]), "admins system:authenticated");
        assert_eq!(groups("", &[]), "");
    }
}
