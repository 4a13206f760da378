//! Each kind of remark has an example, which gets such a remark.

use statusgate_analysis::lint::{self, Kind, Remark};

use crate::support::compile;

#[test]
fn the_example_of_each_kind_gets_one_remark_of_this_kind() {
    for kind in Kind::ALL {
        let policies = compile(&[kind.example().to_owned()]);
        let conventions = policies.given_names().map(|name| lint::lint(&policies, name).unwrap());
        let of_policies =
            policies.policies().iter().map(|policy| lint::lint_policy(&policies, policy));
        let remarks = conventions.chain(of_policies).flat_map(|report| report.remarks);
        // kstatus has no phases, so examples about health also differ from it.
        let differs = |remark: &Remark| remark.kind == Kind::HealthDiffersFromKstatus;
        let found: Vec<Remark> =
            remarks.filter(|remark| remark.kind == kind || !differs(remark)).collect();
        let kinds: Vec<Kind> = found.iter().map(|remark| remark.kind).collect();
        assert_eq!(kinds, [kind], "{found:#?}");
    }
}

#[test]
fn each_kind_has_a_meaning_and_a_help_in_sentences() {
    for kind in Kind::ALL {
        for text in [kind.meaning(), kind.help()] {
            assert!(text.ends_with('.') && !text.contains("  "), "{}: {text}", kind.name());
        }
    }
}
