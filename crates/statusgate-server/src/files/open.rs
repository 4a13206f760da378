//! Reads files, folders and standard input.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use walkdir::{DirEntry, WalkDir};

use statusgate_core::language::Glob;
use statusgate_core::source::{Diagnostic, STDIN, Source};

/// Reads manifests: files, folders and standard input (`-`), in the order in which they are named, without
/// the excluded ones. What cannot be read is a mistake in addition to the others.
pub fn open(
    paths: &[PathBuf],
    recursive: bool,
    exclude: &[Glob],
) -> (Vec<Source>, Vec<Diagnostic>) {
    let hint = match (recursive, exclude) {
        (_, [_, ..]) => " that is not excluded",
        (true, []) => "",
        (false, []) => "; --recursive looks into its subfolders",
    };
    collect(paths.iter().flat_map(|path| {
        if path.as_os_str() == "-" {
            return vec![read(STDIN, io::stdin().lock())];
        }
        if is_excluded(path, exclude) {
            return Vec::new();
        }
        read_path(path, recursive, exclude, hint)
    }))
}

/// Reads policies: files and folders with their subfolders. `-` is the name of a file: a server reads its
/// policies again and again.
pub(super) fn open_policies(paths: &[PathBuf]) -> (Vec<Source>, Vec<Diagnostic>) {
    collect(paths.iter().flat_map(|path| read_path(path, true, &[], "")))
}

/// Reads the bytes of a file or of standard input (`-`).
///
/// # Errors
/// A file that cannot be read, or that has more bytes.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, ReadError> {
    if path.as_os_str() == "-" {
        return limited(io::stdin().lock());
    }
    limited(fs::File::open(path)?)
}

/// Why bytes cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system's reason.
    #[error("this cannot be read: {0}")]
    Failed(#[from] io::Error),
    /// There are more bytes than the limit.
    #[error("this is larger than {} GiB", MAX_BYTES >> 30)]
    TooLarge,
}

type Opened = Result<Source, Diagnostic>;

fn collect(all: impl Iterator<Item = Opened>) -> (Vec<Source>, Vec<Diagnostic>) {
    let (mut sources, mut mistakes) = (Vec::new(), Vec::new());
    for read in all {
        match read {
            Ok(source) => sources.push(source),
            Err(mistake) => mistakes.push(mistake),
        }
    }
    (sources, mistakes)
}

/// A file, or the documents of a folder: `*.yaml`, `*.yml` and `*.json` by name.
///
/// Left out are hidden names (editors write such files, and a mounted ConfigMap has a `..data` folder
/// that holds all its files once more), kustomize's own files, links to folders (they can form a
/// circle), pipes and devices. A path that is named itself is read in any case.
fn read_path(path: &Path, recursive: bool, exclude: &[Glob], hint: &str) -> Vec<Opened> {
    if !path.is_dir() {
        return vec![read_file(path)];
    }
    let depth = if recursive { usize::MAX } else { 1 };
    let entries = WalkDir::new(path).min_depth(1).max_depth(depth).sort_by_file_name();
    let wanted = entries.into_iter().filter_entry(|entry| {
        let name = entry.file_name().as_encoded_bytes();
        let is_hidden = name.starts_with(b".") || name.starts_with(b"kustomization.");
        entry.depth() == 0 || !(is_hidden || is_excluded(entry.path(), exclude))
    });
    let read = wanted.filter_map(|entry| match entry {
        // One folder without permission must not hide its neighbors.
        Err(error) => {
            let at = error.path().unwrap_or(path).display().to_string();
            let error = ReadError::Failed(
                error.into_io_error().unwrap_or_else(|| io::ErrorKind::Other.into()),
            );
            Some(Err(Diagnostic::unread(at, error.to_string())))
        }
        Ok(entry) => is_document(&entry).then(|| read_file(entry.path())),
    });
    let read: Vec<Opened> = read.collect();
    if read.is_empty() {
        let message = format!("this folder has no file named *.yaml, *.yml or *.json{hint}");
        return vec![Err(Diagnostic::unread(path.display().to_string(), message))];
    }
    read
}

/// Whether a name matches: the whole path, or its end from one of its folders on.
fn is_excluded(path: &Path, exclude: &[Glob]) -> bool {
    let path = path.to_string_lossy();
    let ends = path.match_indices('/').map(|(at, _)| &path[at + 1..]);
    std::iter::once(&*path).chain(ends).any(|end| exclude.iter().any(|glob| glob.matches(end)))
}

fn is_document(entry: &DirEntry) -> bool {
    let extension = entry.path().extension().and_then(OsStr::to_str);
    matches!(extension, Some("yaml" | "yml" | "json"))
        && !entry.file_type().is_dir()
        // Reading a pipe waits for a writer. A link to nowhere is reported when it is read.
        && fs::metadata(entry.path()).map_or(true, |of| of.is_file())
}

fn read_file(path: &Path) -> Opened {
    let file = fs::File::open(path).map_err(|error| {
        let error = ReadError::Failed(error);
        Diagnostic::unread(path.display().to_string(), error.to_string())
    })?;
    // Annotations and code scanning compare names with those of the repository.
    read(&path.strip_prefix(".").unwrap_or(path).display().to_string(), file)
}

fn read(name: &str, reader: impl Read) -> Opened {
    let bytes = limited(reader).map_err(|error| Diagnostic::unread(name, error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..good].iter().filter(|byte| **byte == b'\n').count() + 1;
        Diagnostic::unread(name, format!("this is not UTF-8 text from line {line} on"))
    })?;
    Ok(Source::new(name, text))
}

fn limited(reader: impl Read) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    let length = reader.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if length as u64 > MAX_BYTES { Err(ReadError::TooLarge) } else { Ok(bytes) }
}

/// Far above what a cluster prints, far below what an endless device would fill.
const MAX_BYTES: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_gives_its_documents_by_name_and_subfolders_only_when_asked() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("b/c")).unwrap();
        for name in
            ["z.json", "a.yml", "b/c/d.yaml", "e.yaml", "n.txt", ".h.yaml", "kustomization.yaml"]
        {
            fs::write(root.join(name), name).unwrap();
        }
        std::os::unix::fs::symlink(root, root.join("b/again")).unwrap();
        let texts = |recursive| -> Vec<String> {
            let (files, mistakes) = open(&[root.to_owned()], recursive, &[]);
            assert_eq!(mistakes, []);
            files.into_iter().map(|file| file.text).collect()
        };
        assert_eq!(texts(false), ["a.yml", "e.yaml", "z.json"]);
        assert_eq!(texts(true), ["a.yml", "b/c/d.yaml", "e.yaml", "z.json"]);
    }

    #[test]
    fn a_path_is_excluded_by_its_name_its_folder_or_all_of_it() {
        let path = Path::new("charts/db/templates/claim.yaml");
        let is_excluded = |glob: &str| is_excluded(path, &[glob.into()]);
        for glob in ["claim.yaml", "templates/*", "*/templates/*", "charts/*", "*.yaml"] {
            assert!(is_excluded(glob), "{glob}");
        }
        for glob in ["claim", "template", "harts/*", "db", "*.yml"] {
            assert!(!is_excluded(glob), "{glob}");
        }
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("templates")).unwrap();
        for name in ["templates/a.yaml", "b.yaml", "values.yaml"] {
            fs::write(folder.path().join(name), name).unwrap();
        }
        let exclude = ["templates".into(), "values.yaml".into()];
        let (files, mistakes) = open(&[folder.path().to_owned()], true, &exclude);
        let texts: Vec<&str> = files.iter().map(|file| file.text.as_str()).collect();
        assert_eq!((texts, mistakes), (vec!["b.yaml"], Vec::new()));
    }

    #[test]
    fn a_mounted_configmap_gives_each_document_once_and_in_order() {
        use std::os::unix::fs::symlink;
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
        let (files, mistakes) = open_policies(&[folder.path().to_owned()]);
        assert_eq!(mistakes, []);
        let texts: Vec<_> = files.iter().map(|file| file.text.as_str()).collect();
        assert_eq!(texts, ["a.yml", "b.yaml", "c.json"]);
    }

    #[test]
    fn an_unreadable_file_is_named_and_the_others_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("good"), "a: 1").unwrap();
        fs::write(path("latin"), b"a: 1\nb: \xff").unwrap();
        fs::create_dir(path("empty")).unwrap();
        let paths = ["nowhere", "latin", "empty", "good"].map(path);
        let (files, mistakes) = open(&paths, false, &[]);
        assert_eq!(files.len(), 1);
        let said: Vec<&str> = mistakes.iter().map(|mistake| mistake.message.as_str()).collect();
        assert!(said[0].starts_with("this cannot be read: No such file"), "{said:?}");
        assert_eq!(said[1], "this is not UTF-8 text from line 2 on");
        assert!(said[2].starts_with("this folder has no file named"), "{said:?}");
        assert!(mistakes[0].to_string().starts_with(&paths[0].display().to_string()));
    }

    #[test]
    fn a_folder_that_cannot_be_read_is_named_and_its_neighbours_are_read() {
        let folder = tempfile::tempdir().unwrap();
        // Not by permissions, which do not stop root: by a path that is longer than any may be. It is
        // put together of two that are not.
        let deep = |name: &str| {
            let names = std::iter::repeat_n("x".repeat(250), 9);
            folder.path().join(name).join(names.collect::<PathBuf>())
        };
        let (base, below) = (deep("in/b"), deep("tmp"));
        fs::create_dir_all(&base).unwrap();
        fs::create_dir_all(&below).unwrap();
        fs::rename(folder.path().join("tmp"), base.join("tmp")).unwrap();
        fs::create_dir(folder.path().join("in/a")).unwrap();
        fs::create_dir(folder.path().join("in/c")).unwrap();
        for name in ["a/claims.yaml", "c/claims.yaml", "z.yaml"] {
            fs::write(folder.path().join("in").join(name), name).unwrap();
        }
        let (files, mistakes) = open(&[folder.path().join("in")], true, &[]);
        let texts: Vec<&str> = files.iter().map(|file| file.text.as_str()).collect();
        assert_eq!(texts, ["a/claims.yaml", "c/claims.yaml", "z.yaml"]);
        assert_eq!(mistakes.len(), 1);
        let named = base.join("tmp").display().to_string();
        assert!(mistakes[0].file.starts_with(&named), "{}", mistakes[0]);
        assert!(mistakes[0].message.starts_with("this cannot be read: "), "{}", mistakes[0]);
    }

    #[test]
    fn only_folders_skip_what_is_not_a_file() {
        use std::os::unix::{fs::symlink, net::UnixListener};
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let _socket = UnixListener::bind(path("socket.yaml")).unwrap();
        symlink("/dev/zero", path("endless.yaml")).unwrap();
        symlink("nowhere", path("broken.yaml")).unwrap();
        fs::write(path("good"), "a: 1").unwrap();
        symlink("good", path("link.yaml")).unwrap();
        let (files, mistakes) = open(&[folder.path().to_owned()], false, &[]);
        let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, [path("link.yaml").display().to_string()]);
        assert_eq!(mistakes.len(), 1);
        assert_eq!(*mistakes[0].file, *path("broken.yaml").display().to_string());
        // Such as `/dev/stdin`, or what a shell makes of `<(…)`.
        symlink("/dev/null", path("null")).unwrap();
        let (files, mistakes) = open(&[path("null")], false, &[]);
        assert_eq!((files.len(), mistakes), (1, Vec::new()));
    }
}
