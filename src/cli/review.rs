//! `statusgate review`: one recorded AdmissionReview, answered through the server's own code path.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::ValueEnum;
use jiff::Timestamp;

use super::{Outcome, time};
use crate::model::Webhook;
use crate::policy::{self, PolicySet};
use crate::server::admit::admit;
use crate::source::{ReadError, read_bytes};

/// The largest review that is read: the server's own limit.
const MAX_BYTES: u64 = 8 << 20;

/// What `review` can be told.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit code 0: the review is allowed (perhaps with a patch or warnings). 1: it is \
                  denied. 2: it is no review, or a file cannot be read."
)]
pub struct Args {
    /// Which webhook answers.
    #[arg(long, value_enum)]
    webhook: Door,

    /// The file with the review; `-` is standard input.
    #[arg(short = 'f', long = "file", value_name = "FILE", default_value = "-")]
    file: PathBuf,

    /// Policies: a file or a folder. May be repeated. Without it: the example policies.
    #[arg(long, value_name = "PATH")]
    policies: Vec<PathBuf>,

    /// `json`: the answer as the server would send it. `table`: the same for a person, with the
    /// patch decoded.
    #[arg(short, long, value_enum, default_value = "json")]
    output: Output,

    /// The time to judge by (RFC 3339), for answers that do not change. Default: the clock.
    #[arg(long, value_name = "TIME", value_parser = time::parse)]
    now: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Door {
    /// The mutating webhook: fills in, imposes, repairs.
    Mutate,
    /// The validating webhook: judges.
    Validate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Output {
    Json,
    Table,
}

/// Answers one review.
///
/// # Errors
/// When policies or the review cannot be read, or the bytes are no review.
pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let sources = policy::load(&args.policies)?;
    let policies = PolicySet::compile(&sources)?;
    let name = args.file.display();
    let body = match read_bytes(&args.file, MAX_BYTES) {
        Err(ReadError::TooLarge(_)) => bail!("HTTP 413: {name} is larger than 8 MiB"),
        read => read.with_context(|| name.to_string())?,
    };
    let webhook = match args.webhook {
        Door::Mutate => Webhook::Mutate,
        Door::Validate => Webhook::Validate,
    };
    #[expect(clippy::disallowed_methods, reason = "the edge: a command reads the clock once")]
    let now = args.now.unwrap_or_else(Timestamp::now);
    let mut denied = false;
    let mut table = Vec::new();
    let reply = admit(&policies, webhook, &body, now, |identity, verdict| {
        denied = verdict.is_denied();
        let names = verdict.policies.iter().filter_map(|index| {
            policies.policies().get(usize::from(*index)).map(|policy| policy.name.as_str())
        });
        let names = names.collect::<Vec<_>>().join(", ");
        let decision = if denied { "denied" } else { "allowed" };
        let judged = if names.is_empty() { "no policy selects it".into() } else { names };
        table.push(format!("{decision}: {} {} by {judged}", identity.resource, identity.name));
        for operation in verdict.patch.iter().flat_map(|patch| &patch.0) {
            table.push(format!("  patch  {operation}"));
        }
        for finding in &verdict.findings {
            let action = finding.action.label();
            let (field, message, rule) = (&finding.field, &finding.message, finding.rule);
            table.push(format!("  {action:<6} {field}: {message} [{rule}]"));
        }
    });
    if reply.status != 200 {
        bail!("HTTP {}: {}", reply.status, String::from_utf8_lossy(&reply.body));
    }
    let mut out = io::stdout().lock();
    match args.output {
        Output::Json => out.write_all(&reply.body)?,
        Output::Table => out.write_all(table.join("\n").as_bytes())?,
    }
    out.write_all(b"\n")?;
    Ok(if denied { Outcome::Findings } else { Outcome::Clean })
}
