//! Policies on disk: which files, in which order.

use std::io;
use std::path::{Path, PathBuf};

use super::reload::{File, ReadError};
use crate::policy::{Diagnostics, PolicySet, Source};

/// Reads the documents of files and folders, or the example policies where none are named: what
/// a command that runs once needs.
///
/// # Errors
/// A path that cannot be read, is no text, or is a folder without documents.
pub fn load(paths: &[PathBuf]) -> Result<Vec<Source>, PolicyFilesError> {
    if paths.is_empty() { Ok(PolicySet::examples()) } else { sources(&read(paths)?) }
}

/// Reads the policy documents of files and folders.
///
/// Of a folder: `*.yaml`, `*.yml` and `*.json` in the order of their names, not of its subfolders.
/// Names that begin with a dot are left out: editors leave such files behind, and a mounted
/// ConfigMap consists of symlinks beside a `..data` folder that holds all files once more.
///
/// # Errors
/// A path that cannot be read, or a folder without documents, which is more likely a mistake in
/// the path than the wish for no policy.
pub(super) fn read(paths: &[PathBuf]) -> Result<Vec<File>, PolicyFilesError> {
    let (mut files, mut errors) = (Vec::new(), Vec::new());
    for path in paths.iter().flat_map(|path| documents_at(path)) {
        match path.and_then(|path| Ok(File::read(&path)?)) {
            Ok(file) => files.push(file),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() {
        return Ok(files);
    }
    let (sources, more) = texts(&files);
    errors.extend(more);
    Err(PolicyFilesError::of(errors, &sources))
}

/// The files as the policy compiler takes them.
///
/// # Errors
/// A file that is not UTF-8.
pub(super) fn sources(files: &[File]) -> Result<Vec<Source>, PolicyFilesError> {
    let (sources, errors) = texts(files);
    if errors.is_empty() { Ok(sources) } else { Err(PolicyFilesError::of(errors, &sources)) }
}

/// Those that are texts, and what is wrong with the others.
fn texts(files: &[File]) -> (Vec<Source>, Vec<PolicyFilesError>) {
    let (mut sources, mut errors) = (Vec::new(), Vec::new());
    for file in files {
        let name = file.name.clone();
        match std::str::from_utf8(&file.bytes) {
            Ok(text) => sources.push(Source::new(name, text)),
            Err(source) => errors.push(PolicyFilesError::NotText { file: name, source }),
        }
    }
    (sources, errors)
}

/// The file at a path, or those of the folder there.
fn documents_at(path: &Path) -> Vec<Result<PathBuf, PolicyFilesError>> {
    // Of a symlink, what it leads to.
    let found = std::fs::metadata(path).and_then(|metadata| {
        if metadata.is_dir() { documents(path) } else { Ok(vec![path.to_owned()]) }
    });
    match found {
        Ok(paths) if paths.is_empty() => {
            vec![Err(PolicyFilesError::NoDocuments { folder: path.display().to_string() })]
        }
        Ok(paths) => paths.into_iter().map(Ok).collect(),
        Err(source) => vec![Err(failed(path, source))],
    }
}

fn documents(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut documents = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let name = entry.file_name();
        let hidden = name.as_encoded_bytes().starts_with(b".")
            // Lies beside the policies where kustomize makes a ConfigMap of them.
            || name.as_encoded_bytes().starts_with(b"kustomization.");
        let extension = path.extension().and_then(|extension| extension.to_str());
        if !hidden && matches!(extension, Some("yaml" | "yml" | "json")) && !path.is_dir() {
            documents.push(path);
        }
    }
    documents.sort();
    Ok(documents)
}

fn failed(path: &Path, source: io::Error) -> PolicyFilesError {
    ReadError { name: path.display().to_string(), source }.into()
}

/// Why policies could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyFilesError {
    /// A file or folder that cannot be read.
    #[error(transparent)]
    FailedRead(#[from] ReadError),
    /// A folder in which there is nothing to read.
    #[error("no policy in {folder}: it has no file named *.yaml, *.yml or *.json")]
    NoDocuments {
        /// The folder.
        folder: String,
    },
    /// A file that is not text.
    #[error("{file} is not UTF-8 text")]
    NotText {
        /// The file.
        file: String,
        /// Where it stops being text.
        source: std::str::Utf8Error,
    },
    /// Several things that are wrong.
    #[error("{}", in_lines(errors, mistakes.as_ref()))]
    Several {
        /// Why some files could not be read.
        errors: Vec<Self>,
        /// What is wrong in the others.
        mistakes: Option<Diagnostics>,
    },
}

impl PolicyFilesError {
    /// What is wrong where some files could not be read: that, and the mistakes in the others.
    fn of(mut errors: Vec<Self>, sources: &[Source]) -> Self {
        let mistakes = PolicySet::mistakes_of_some(sources);
        match errors.pop() {
            Some(error) if errors.is_empty() && mistakes.is_none() => error,
            last => {
                errors.extend(last);
                Self::Several { errors, mistakes }
            }
        }
    }
}

/// Each error with its cause on a line of its own, and below them the mistakes.
fn in_lines(errors: &[PolicyFilesError], mistakes: Option<&Diagnostics>) -> String {
    let line = |error: &PolicyFilesError| match error {
        PolicyFilesError::FailedRead(ReadError { source, .. }) => format!("{error}: {source}"),
        PolicyFilesError::NotText { source, .. } => format!("{error}: {source}"),
        _ => error.to_string(),
    };
    let mut lines: Vec<String> = errors.iter().map(line).collect();
    lines.extend(mistakes.map(|mistakes| format!("\n{mistakes}")));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_mounted_configmap_gives_each_document_once_and_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let generation = folder.path().join("..2026_11_21");
        fs::create_dir(&generation).unwrap();
        symlink("..2026_11_21", folder.path().join("..data")).unwrap();
        for name in ["b.yaml", "a.yml", "c.json", "README.md"] {
            fs::write(generation.join(name), name).unwrap();
            symlink(format!("..data/{name}"), folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join(".b.yaml.swp"), "").unwrap();
        fs::create_dir(folder.path().join("d.yaml")).unwrap();
        let files = read(&[folder.path().to_owned()]).unwrap();
        let texts: Vec<_> = files.iter().map(|file| file.bytes.as_slice()).collect();
        assert_eq!(texts, [b"a.yml".as_slice(), b"b.yaml", b"c.json"]);
    }

    #[test]
    fn a_folder_without_documents_and_a_missing_path_are_errors_that_name_it() {
        let folder = tempfile::tempdir().unwrap();
        let error = read(&[folder.path().to_owned()]).unwrap_err().to_string();
        assert!(error.starts_with(&format!("no policy in {}", folder.path().display())));
        let error = read(&["/nowhere".into()]).unwrap_err().to_string();
        assert_eq!(error, "failed to read /nowhere");
    }

    #[test]
    fn what_cannot_be_read_hides_no_mistake_in_the_other_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("a.yaml"), b"kind: \xff").unwrap();
        let policy = "apiVersion: statusgate.dev/v1alpha1\nkind: StatusPolicy\nmetadata: {name: b}\nspec: {convention: elsewhere, enforcment: Deny}\n";
        fs::write(path("b.yaml"), policy).unwrap();
        let error = load(&[path("nowhere"), folder.path().to_owned()]).unwrap_err().to_string();
        for said in
            ["nowhere: No such file", "a.yaml is not UTF-8 text: ", "unknown key \"enforcment\""]
        {
            assert!(error.contains(said), "{error}");
        }
        assert!(!error.contains("unknown convention"), "it may be in the others: {error}");
    }
}
