//! The line of `--version`.

use std::sync::LazyLock;

/// The version, and the commit and its date if build.rs knows them.
pub(super) static LINE: LazyLock<String> = LazyLock::new(|| {
    let version = env!("CARGO_PKG_VERSION");
    match option_env!("STATUSGATE_BUILD").unwrap_or_default() {
        "" => version.to_owned(),
        build => format!("{version} ({build})"),
    }
});
