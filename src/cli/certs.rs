//! `statusgate certs`: creates a certificate authority and a serving certificate, as files.
//!
//! The command can be repeated: it keeps valid certificates, signs a new leaf with a valid CA, so that
//! a `caBundle` stays correct, and does not overwrite files of other tools.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use jiff::Timestamp;

use super::{Outcome, time};
use statusgate_core::values;
use statusgate_tls::{Authority, Bundle, Expiry, Issued, LEAF_NAME, Pem, Validity};

/// The arguments of `certs`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Writes ca.crt, ca.key, tls.crt and tls.key. Only the owner can read the keys. The \
                  certificate always contains localhost, 127.0.0.1, ::1 and the DNS names of the Service. \
                  A valid certificate is kept; a valid CA signs the new certificate."
)]
pub(super) struct Args {
    /// The output folder. Created if missing.
    #[arg(long, value_name = "FOLDER", default_value = "certs")]
    out: PathBuf,

    /// The name of the Kubernetes Service of the server.
    #[arg(long, value_name = "NAME", default_value = "statusgate", value_parser = values::dns_name)]
    service: String,

    /// The namespace of the Service.
    #[arg(long, value_name = "NAME", default_value = "statusgate-system",
          value_parser = values::namespace)]
    namespace: String,

    /// An additional DNS name. May be repeated. `--host` is the same.
    #[arg(long, alias = "host", value_name = "NAME", value_parser = values::dns_name)]
    dns: Vec<String>,

    /// An additional IP address. May be repeated.
    #[arg(long, value_name = "ADDRESS")]
    ip: Vec<IpAddr>,

    /// The validity of the serving certificate in days.
    #[arg(long, value_name = "DAYS", default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=LONGEST_DAYS))]
    days: u32,

    /// The validity of a new CA in days.
    #[arg(long, value_name = "DAYS", default_value_t = 3650, value_parser = clap::value_parser!(u32).range(1..=LONGEST_DAYS))]
    ca_days: u32,

    /// Overwrite all files, including the CA.
    #[arg(long)]
    force: bool,
}

/// Creates missing files.
///
/// # Errors
/// Files that cannot be read or written, or that another tool created.
pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    make(args, time::clock(), &mut io::stdout().lock())?;
    Ok(Outcome::Clean)
}

fn make(args: &Args, now: Timestamp, out: &mut impl Write) -> anyhow::Result<()> {
    let names = names(args);
    let valid = |days| Validity::from_now(Duration::from_secs(u64::from(days) * 86_400), now);
    let (bundle, authority) = content(args, now)?;
    if let Some(bundle) = bundle {
        let out_folder = args.out.display();
        if is_good(&bundle, &names, now) {
            let until = bundle.validity.not_after;
            writeln!(out, "kept the certificate in {out_folder}: it is valid until {until}")?;
            return Ok(());
        }
        if authority.is_none() {
            bail!("{out_folder} has no ca.key to sign a new certificate; --force creates a new CA");
        }
    }

    let is_new = authority.is_none();
    let authority = match authority {
        Some(authority) => authority,
        None => Authority::make(CA_NAME, valid(args.ca_days))?,
    };
    let issued = authority.issue(&names, valid(args.days))?;
    for path in write_all(&args.out, is_new.then_some(&authority), &issued)? {
        writeln!(out, "wrote {}", path.display())?;
    }
    if !is_new {
        writeln!(out, "kept the CA: its caBundle stays valid")?;
    }
    writeln!(out, "valid for {} days, for {}", args.days, names.join(", "))?;
    let ca = args.out.join("ca.crt");
    writeln!(out, "caBundle for the webhook registrations: base64 -w0 {}", ca.display())?;
    Ok(())
}

/// Writes all files and returns their paths. Nothing is printed meanwhile: if stdout is closed, the
/// files must still be complete.
fn write_all(
    folder: &Path,
    authority: Option<&Authority>,
    issued: &Issued,
) -> anyhow::Result<Vec<PathBuf>> {
    fs::create_dir_all(folder).with_context(|| format!("failed to create {}", folder.display()))?;
    let mut files = Vec::new();
    if let Some(authority) = authority {
        files.push(("ca.crt", authority.certificate().to_owned(), 0o644));
        files.push(("ca.key", authority.key(), 0o600));
    }
    files.push(("tls.key", issued.key.clone(), 0o600));
    files.push(("tls.crt", issued.certificate.clone(), 0o644));
    let write = |(name, text, mode): (&str, String, u32)| {
        let path = folder.join(name);
        write(&path, &text, mode).with_context(|| format!("failed to write {}", path.display()))?;
        Ok(path)
    };
    files.into_iter().map(write).collect()
}

/// Replaces a file atomically: a server reads the old file or the new one.
fn write(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}.tmp", std::process::id()));
    let temporary = PathBuf::from(temporary);
    let written = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&temporary)
        .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The caller reports the error.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// A certificate and its key, as far as the folder has them.
struct Pair {
    certificate: Option<String>,
    key: Option<String>,
}

impl Pair {
    fn read(folder: &Path, name: &str) -> anyhow::Result<Self> {
        let file = |extension: &str| {
            let path = folder.join(format!("{name}.{extension}"));
            match fs::read_to_string(&path) {
                Ok(text) => Ok(Some(text)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                // Not text, so not a file of statusgate.
                Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(Some(String::new())),
                Err(error) => {
                    Err(error).with_context(|| format!("failed to read {}", path.display()))
                }
            }
        };
        Ok(Self { certificate: file("crt")?, key: file("key")? })
    }

    fn both(&self) -> Option<(&str, &str)> {
        self.certificate.as_deref().zip(self.key.as_deref())
    }

    /// A certificate of statusgate has its common name; a key belongs to the certificate next to it.
    fn reject_foreign(&self, folder: &Path, name: &str, ours: &str) -> anyhow::Result<()> {
        let certificate = format!("{name}.crt");
        let subject = self
            .certificate
            .as_ref()
            .map(|text| statusgate_tls::subject(Pem::of(&certificate, text)));
        let foreign = match subject {
            Some(Some((name, _))) if name == ours => return Ok(()),
            Some(_) => certificate,
            None if self.key.is_some() => format!("{name}.key"),
            None => return Ok(()),
        };
        let path = folder.join(foreign);
        bail!("{} was not created by statusgate; --force overwrites it", path.display())
    }
}

/// The certificate that the CA of the folder signed, and the authority if it can sign.
fn content(args: &Args, now: Timestamp) -> anyhow::Result<(Option<Bundle>, Option<Authority>)> {
    let folder = &args.out;
    let (ca, leaf) = (Pair::read(folder, "ca")?, Pair::read(folder, "tls")?);
    if args.force {
        return Ok((None, None));
    }
    ca.reject_foreign(folder, "ca", CA_NAME)?;
    leaf.reject_foreign(folder, "tls", LEAF_NAME)?;
    let authority = match ca.both() {
        Some((certificate, key)) if ends_after(certificate, now) => {
            Some(Authority::from_pem(certificate, key).with_context(|| {
                format!("failed to use the CA in {}; --force creates a new one", folder.display())
            })?)
        }
        _ => None,
    };
    let bundle = leaf.both().and_then(|(certificate, key)| {
        let (certificate, key) = (Pem::of("tls.crt", certificate), Pem::of("tls.key", key));
        let bundle = Bundle::parse(certificate, key, now).ok()?;
        let ca = Pem::of("ca.crt", ca.certificate.as_deref()?);
        bundle.is_trusted_by(ca, now).then_some(bundle)
    });
    Ok((bundle, authority))
}

fn is_good(bundle: &Bundle, names: &[String], now: Timestamp) -> bool {
    BTreeSet::from_iter(&bundle.names) == BTreeSet::from_iter(names)
        && bundle.validity.expiry(now) == Expiry::Far
}

fn ends_after(certificate: &str, now: Timestamp) -> bool {
    statusgate_tls::subject(Pem::of("ca.crt", certificate))
        .is_some_and(|(_, not_after)| not_after > now)
}

fn names(args: &Args) -> Vec<String> {
    let Args { service, namespace, .. } = args;
    let mut names = vec![
        format!("{service}.{namespace}.svc"),
        format!("{service}.{namespace}.svc.cluster.local"),
        format!("{service}.{namespace}"),
        service.clone(),
        "localhost".to_owned(),
        "127.0.0.1".to_owned(),
        "::1".to_owned(),
    ];
    for name in args.dns.iter().cloned().chain(args.ip.iter().map(ToString::to_string)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The common name of the CAs of this command.
const CA_NAME: &str = "statusgate CA";

/// A century.
const LONGEST_DAYS: i64 = 36_500;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn certs(folder: &Path, more: &[&str], now: &str) -> anyhow::Result<String> {
        let out = folder.to_str().unwrap();
        let line = Line::parse_from([&["certs", "--out", out], more].concat());
        let mut said = Vec::new();
        make(&line.args, now.parse().unwrap(), &mut said)?;
        Ok(String::from_utf8(said).unwrap())
    }

    fn file(folder: &Path, name: &str) -> String {
        fs::read_to_string(folder.join(name)).unwrap()
    }

    const NOW: &str = "2026-11-21T12:00:00Z";

    #[test]
    fn a_new_folder_gets_four_files_and_private_keys() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("new");
        let said = certs(&folder, &["--ip", "10.0.0.1", "--dns", "gate.example"], NOW).unwrap();
        assert!(said.contains("gate.example, 10.0.0.1"), "{said}");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 4);
        for (name, mode) in [("ca.key", 0o600), ("tls.key", 0o600), ("tls.crt", 0o644)] {
            let mode_there = fs::metadata(folder.join(name)).unwrap().permissions().mode();
            assert_eq!(mode_there & 0o777, mode, "{name}");
        }
    }

    #[test]
    fn a_closed_stdout_does_not_leave_files_out() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let line = Line::parse_from(["certs", "--out", folder.path().to_str().unwrap()]);
        make(&line.args, NOW.parse().unwrap(), &mut Closed).unwrap_err();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
    }

    #[test]
    fn a_valid_certificate_is_kept_and_an_expiring_one_is_renewed_with_the_same_ca() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        certs(folder, &[], NOW).unwrap();
        let (ca, leaf) = (file(folder, "ca.crt"), file(folder, "tls.crt"));
        assert!(certs(folder, &[], NOW).unwrap().starts_with("kept"));
        assert_eq!(file(folder, "tls.crt"), leaf);
        for later in ["2027-11-01T00:00:00Z", "2030-01-01T00:00:00Z"] {
            assert!(certs(folder, &[], later).unwrap().contains("kept the CA"));
            assert_eq!(file(folder, "ca.crt"), ca);
            assert_ne!(file(folder, "tls.crt"), leaf);
        }
    }

    #[test]
    fn other_names_give_a_new_leaf_and_force_gives_a_new_ca() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        certs(folder, &[], NOW).unwrap();
        let ca = file(folder, "ca.crt");
        assert!(certs(folder, &["--dns", "more"], NOW).unwrap().contains("more"));
        assert_eq!(file(folder, "ca.crt"), ca);
        certs(folder, &["--force"], NOW).unwrap();
        assert_ne!(file(folder, "ca.crt"), ca);
    }

    #[test]
    fn files_of_other_tools_are_overwritten_only_with_force() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        fs::write(folder.join("tls.crt"), "mine").unwrap();
        let error = certs(folder, &[], NOW).unwrap_err().to_string();
        assert!(error.ends_with("tls.crt was not created by statusgate; --force overwrites it"));
        assert_eq!(file(folder, "tls.crt"), "mine");
        certs(folder, &["--force"], NOW).unwrap();
        assert_ne!(file(folder, "tls.crt"), "mine");
    }

    #[test]
    fn a_ca_key_of_another_ca_is_an_error() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        certs(one.path(), &[], NOW).unwrap();
        certs(other.path(), &[], NOW).unwrap();
        fs::copy(other.path().join("ca.key"), one.path().join("ca.key")).unwrap();
        let error = format!("{:#}", certs(one.path(), &["--dns", "more"], NOW).unwrap_err());
        assert!(error.ends_with("does not belong to its certificate"), "{error}");
    }

    #[test]
    fn without_the_ca_key_an_expiring_certificate_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        certs(folder, &[], NOW).unwrap();
        fs::remove_file(folder.join("ca.key")).unwrap();
        assert!(certs(folder, &[], NOW).unwrap().starts_with("kept"));
        let error = certs(folder, &[], "2027-11-01T00:00:00Z").unwrap_err().to_string();
        assert!(error.contains("no ca.key"), "{error}");
    }
}
