//! `statusgate review`: responds to one recorded AdmissionReview, through the code of the server.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::Outcome;
use super::output::{Output, severity, stdout};
use super::policies::Policies;
use super::time::Now;
use crate::files::{ReadError, read_bytes};
use crate::server::BODY_BYTES;
use crate::server::admit::admit;
use statusgate_core::model::Webhook;

/// The arguments of `review`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit code 0: the review is allowed, with or without a patch or warnings. 1: it is \
                  denied. 2: the input is not a review, or a file cannot be read."
)]
pub struct Args {
    /// The webhook: `mutate` sets defaults and repairs, `validate` judges. `agreement` judges only whether
    /// phase and conditions agree, `mandatory` everything else.
    #[arg(long, value_name = "WEBHOOK", value_parser = webhooks())]
    webhook: Webhook,

    /// The file with the review; `-` for standard input.
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

fn webhooks() -> impl TypedValueParser<Value = Webhook> {
    PossibleValuesParser::new(Webhook::ALL.map(Webhook::name)).map(move |name| {
        let found = Webhook::ALL.into_iter().find(|webhook| webhook.name() == name);
        found.unwrap_or(Webhook::Validate)
    })
}

/// Responds to one review.
///
/// # Errors
/// When the policies or the review cannot be read, or the input is not a review.
pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let policies = args.policies.load()?;
    let name = args.file.display();
    let body = match read_bytes(&args.file, BODY_BYTES as u64) {
        Err(ReadError::TooLarge(_)) => {
            bail!("{name}: larger than {} MiB: the server answers with HTTP 413", BODY_BYTES >> 20)
        }
        read => read.with_context(|| name.to_string())?,
    };
    let mut denied = false;
    let mut table = Vec::new();
    let reply = admit(&policies, args.webhook, &body, args.now.get(), |request, verdict| {
        denied = verdict.is_denied();
        let names = policies.names_of(&verdict.policies).collect::<Vec<_>>().join(", ");
        let decision = if denied { "denied" } else { "allowed" };
        let judged = if names.is_empty() { "no policy selects it".into() } else { names };
        table.push(format!(
            "{decision}: {} {} by {judged}",
            request.subject.resource.resource, request.name
        ));
        for operation in verdict.patch.iter().flat_map(|patch| &patch.0) {
            table.push(format!("  patch  {operation}"));
        }
        for finding in &verdict.findings {
            let action = severity(finding.action);
            let space = " ".repeat("repair".len().saturating_sub(finding.action.label().len()));
            let (field, message, rule) = (&finding.field, &finding.message, finding.rule);
            table.push(format!("  {action}{space} {field}: {message} [{rule}]"));
        }
    });
    if reply.status != 200 {
        let (code, said) = (reply.status.as_u16(), String::from_utf8_lossy(&reply.body));
        bail!("{name}: {said}: the server answers with HTTP {code}");
    }
    let mut out = stdout(args.output == Output::Table);
    match args.output {
        Output::Json => out.write_all(&reply.body)?,
        Output::Table => out.write_all(table.join("\n").as_bytes())?,
    }
    out.write_all(b"\n")?;
    Ok(Outcome::of(denied))
}
