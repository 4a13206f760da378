//! Policies on disk: which files, in which order.

use std::io;
use std::path::{Path, PathBuf};

use super::reload::{File, ReadError};
use crate::policy::{PolicySet, Source};

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
    let mut files = Vec::new();
    for path in paths {
        // Of a symlink, what it leads to.
        if std::fs::metadata(path).map_err(|source| failed(path, source))?.is_dir() {
            let documents = documents(path).map_err(|source| failed(path, source))?;
            if documents.is_empty() {
                return Err(PolicyFilesError::NoDocuments { folder: path.display().to_string() });
            }
            for document in documents {
                files.push(File::read(&document)?);
            }
        } else {
            files.push(File::read(path)?);
        }
    }
    Ok(files)
}

/// The files as the policy compiler takes them.
///
/// # Errors
/// A file that is not UTF-8.
pub(super) fn sources(files: &[File]) -> Result<Vec<Source>, PolicyFilesError> {
    files
        .iter()
        .map(|file| match std::str::from_utf8(&file.bytes) {
            Ok(text) => Ok(Source::new(file.name.as_str(), text)),
            Err(source) => Err(PolicyFilesError::NotText { file: file.name.clone(), source }),
        })
        .collect()
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
}
