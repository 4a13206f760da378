//! `statusgate review`: responds to recorded AdmissionReviews, through the code of the server.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, bail};
use serde_json::value::RawValue;

use super::Outcome;
use super::action::one_of;
use super::output::{Output, severity, stdout};
use super::policies::Policies;
use super::time::Now;
use statusgate_core::admit::admit;
use statusgate_core::engine::Verdict;
use statusgate_core::model::Webhook;
use statusgate_core::policy::PolicySet;
use statusgate_core::wire::AdmissionRequest;
use statusgate_server::BODY_BYTES;
use statusgate_server::files::read_bytes;

/// The arguments of `review`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit code 0: each review is allowed, with or without a patch or warnings. 1: one is \
                  denied. 2: the input is not a review, or a file cannot be read."
)]
pub(super) struct Args {
    /// The webhook: `mutate` sets defaults and repairs, `validate` judges.
    #[arg(long, value_name = "WEBHOOK", value_parser = one_of(Webhook::ALL, Webhook::name))]
    webhook: Webhook,

    /// The file with the reviews, one after the other; `-` for standard input.
    #[arg(short = 'f', long = "file", value_name = "FILE", default_value = "-")]
    file: PathBuf,

    #[command(flatten)]
    policies: Policies,

    /// `json`: the response of the server. `table`: the same for a person, with a decoded patch.
    #[arg(short, long, value_enum, default_value = "json")]
    output: Output,

    #[command(flatten)]
    now: Now,
}

/// Responds to each review.
///
/// # Errors
/// When the policies or a review cannot be read, or the input is not a review.
pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let policies = args.policies.load()?;
    let name = args.file.display();
    let bytes = read_bytes(&args.file).with_context(|| name.to_string())?;
    let mut out = stdout(args.output == Output::Table);
    let mut denied = false;
    for body in bodies(&bytes) {
        if body.len() > BODY_BYTES {
            let limit = BODY_BYTES >> 20;
            bail!("{name}: larger than {limit} MiB: the server answers with HTTP 413");
        }
        let mut table = Vec::new();
        let reply = admit(&policies, args.webhook, body, args.now.get(), |request, verdict| {
            denied |= verdict.is_denied();
            table = lines(&policies, request, verdict);
        });
        if reply.status != 200 {
            let said = String::from_utf8_lossy(&reply.body);
            bail!("{name}: {said}: the server answers with HTTP {}", reply.status);
        }
        match args.output {
            Output::Json => out.write_all(&reply.body)?,
            Output::Table => out.write_all(table.join("\n").as_bytes())?,
        }
        out.write_all(b"\n")?;
    }
    Ok(Outcome::of(denied))
}

/// The JSON values of an input. What is not JSON is the last one: the server names the error.
fn bodies(bytes: &[u8]) -> Vec<&[u8]> {
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<&RawValue>();
    let mut bodies = Vec::new();
    let mut start = 0;
    loop {
        match values.next() {
            Some(Ok(value)) => bodies.push(value.get().as_bytes()),
            None if !bodies.is_empty() => return bodies,
            _ => {
                bodies.push(&bytes[start..]);
                return bodies;
            }
        }
        start = values.byte_offset();
    }
}

/// The response for a person.
fn lines(
    policies: &PolicySet,
    request: &AdmissionRequest<'_>,
    verdict: &Verdict<'_>,
) -> Vec<String> {
    let names = policies.names_of(&verdict.policies).collect::<Vec<_>>().join(", ");
    let decision = if verdict.is_denied() { "denied" } else { "allowed" };
    let judged = if names.is_empty() { "no policy selects it".into() } else { names };
    let resource = &request.subject.resource.resource;
    let mut lines = vec![format!("{decision}: {resource} {} by {judged}", request.name)];
    for operation in verdict.patch.iter().flat_map(|patch| &patch.0) {
        lines.push(format!("  patch  {operation}"));
    }
    for finding in &verdict.findings {
        let action = severity(finding.action);
        let space = " ".repeat("repair".len().saturating_sub(finding.action.label().len()));
        let (field, message, rule) = (&finding.field, &finding.message, finding.rule);
        lines.push(format!("  {action}{space} {field}: {message} [{rule}]"));
    }
    lines
}
