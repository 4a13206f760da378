//! The texts behind paths.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::{File, Mistake};

/// Reads files, folders and standard input (`-`), in the order in which they are named.
///
/// Of a folder: `*.yaml`, `*.yml` and `*.json` in the order of their names, with `recursive` those
/// of its subfolders too. Names that begin with a dot, links to folders, pipes and devices, and
/// kustomize's own files are left out; a path that is named itself is read whatever it is. What cannot
/// be read is a mistake beside the others.
#[must_use]
pub fn open(paths: &[PathBuf], recursive: bool) -> (Vec<File>, Vec<Mistake>) {
    let (mut files, mut mistakes) = (Vec::new(), Vec::new());
    let mut add = |read: Result<File, Mistake>| match read {
        Ok(file) => files.push(file),
        Err(mistake) => mistakes.push(mistake),
    };
    for path in paths {
        if path.as_os_str() == "-" {
            add(text("stdin", io::stdin().lock()));
            continue;
        }
        if !path.is_dir() {
            add(file(path));
            continue;
        }
        let mut found = Vec::new();
        documents(path, recursive, &mut found);
        if found.is_empty() {
            let below = if recursive { "" } else { "; --recursive looks into its subfolders" };
            let message = format!("this folder has no file named *.yaml, *.yml or *.json{below}");
            let file = path.display().to_string();
            add(Err(Mistake { file, place: None, message }));
        }
        found.into_iter().for_each(|found| add(found.and_then(|path| file(&path))));
    }
    (files, mistakes)
}

/// The documents of a folder, and each entry that cannot be looked at: one folder without permission
/// must not hide its neighbours.
fn documents(folder: &Path, recursive: bool, found: &mut Vec<Result<PathBuf, Mistake>>) {
    let mut entries = Vec::new();
    match fs::read_dir(folder) {
        Ok(read) => {
            for entry in read {
                match entry {
                    Ok(entry) => entries.push(entry),
                    Err(error) => found.push(Err(failed(folder, &error))),
                }
            }
        }
        Err(error) => found.push(Err(failed(folder, &error))),
    }
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.as_encoded_bytes();
        if name.starts_with(b".") || name.starts_with(b"kustomization.") {
            continue;
        }
        // Of the entry itself, not of what a link leads to: links between folders make circles.
        match entry.file_type() {
            Err(error) => found.push(Err(failed(&path, &error))),
            Ok(kind) if kind.is_dir() => {
                if recursive {
                    documents(&path, recursive, found);
                }
            }
            Ok(_) => {
                let extension = path.extension().and_then(|extension| extension.to_str());
                // Reading a pipe waits for somebody to write. What a link leads to nowhere is found
                // when it is read.
                let is_file = || fs::metadata(&path).map_or(true, |of| of.is_file());
                if matches!(extension, Some("yaml" | "yml" | "json")) && is_file() {
                    found.push(Ok(path));
                }
            }
        }
    }
}

fn file(path: &Path) -> Result<File, Mistake> {
    let opened = fs::File::open(path).map_err(|error| failed(path, &error))?;
    // Annotations and code scanning compare names with those of the repository.
    let name = path.strip_prefix(".").unwrap_or(path);
    text(&name.display().to_string(), opened)
}

fn text(name: &str, reader: impl Read) -> Result<File, Mistake> {
    let mistake = |message| Mistake { file: name.to_owned(), place: None, message };
    let mut bytes = Vec::new();
    let read = reader.take(MAX_BYTES + 1).read_to_end(&mut bytes);
    let length = read.map_err(|error| failed(Path::new(name), &error))?;
    if length as u64 > MAX_BYTES {
        return Err(mistake("this is larger than 1 GiB: split it".to_owned()));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..good].iter().filter(|byte| **byte == b'\n').count() + 1;
        mistake(format!("this is not UTF-8 text from line {line} on"))
    })?;
    Ok(File::new(name, text))
}

fn failed(path: &Path, error: &io::Error) -> Mistake {
    let file = path.display().to_string();
    Mistake { file, place: None, message: format!("this cannot be read: {error}") }
}

/// Far above what a cluster prints, far below what a device that never ends would fill.
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
            let (files, mistakes) = open(&[root.to_owned()], recursive);
            assert_eq!(mistakes, []);
            files.into_iter().map(|file| file.text).collect()
        };
        assert_eq!(texts(false), ["a.yml", "e.yaml", "z.json"]);
        assert_eq!(texts(true), ["a.yml", "b/c/d.yaml", "e.yaml", "z.json"]);
    }

    #[test]
    fn what_cannot_be_read_is_named_and_the_others_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("good"), "a: 1").unwrap();
        fs::write(path("latin"), b"a: 1\nb: \xff").unwrap();
        fs::create_dir(path("empty")).unwrap();
        let paths = ["nowhere", "latin", "empty", "good"].map(path);
        let (files, mistakes) = open(&paths, false);
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
        let (files, mistakes) = open(&[folder.path().join("in")], true);
        let texts: Vec<&str> = files.iter().map(|file| file.text.as_str()).collect();
        assert_eq!(texts, ["a/claims.yaml", "c/claims.yaml", "z.yaml"]);
        assert_eq!(mistakes.len(), 1);
        let named = base.join("tmp").display().to_string();
        assert!(mistakes[0].file.starts_with(&named), "{}", mistakes[0]);
        assert!(mistakes[0].message.starts_with("this cannot be read: "), "{}", mistakes[0]);
    }

    #[test]
    fn what_is_no_file_is_passed_over_in_folders_alone() {
        use std::os::unix::{fs::symlink, net::UnixListener};
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let _socket = UnixListener::bind(path("socket.yaml")).unwrap();
        symlink("/dev/zero", path("endless.yaml")).unwrap();
        symlink("nowhere", path("broken.yaml")).unwrap();
        fs::write(path("good"), "a: 1").unwrap();
        symlink("good", path("link.yaml")).unwrap();
        let (files, mistakes) = open(&[folder.path().to_owned()], false);
        let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, [path("link.yaml").display().to_string()]);
        assert_eq!(mistakes.len(), 1);
        assert_eq!(mistakes[0].file, path("broken.yaml").display().to_string());
        // Such as `/dev/stdin`, or what a shell makes of `<(…)`.
        symlink("/dev/null", path("null")).unwrap();
        let (files, mistakes) = open(&[path("null")], false);
        assert_eq!((files.len(), mistakes), (1, Vec::new()));
    }
}
