//! What ARCHITECTURE.md names is in the repository.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::support::of_project;

/// Folders that are not part of the repository.
const OTHERS: [&str; 2] = ["target", ".git"];

/// Adds the paths of all files and folders below `folder`, and the words of the paths and of the code.
fn collect(folder: &Path, paths: &mut Vec<String>, words: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder of the project") {
        let path = entry.expect("an entry of the folder").path();
        if OTHERS.iter().any(|other| path.ends_with(other)) {
            continue;
        }
        let name = path.to_str().expect("a path in UTF-8");
        paths.push(format!("/{name}"));
        words.extend(words_of(name).map(str::to_owned));
        if path.is_dir() {
            collect(&path, paths, words);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a source file");
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            words.extend(code.flat_map(words_of).map(str::to_owned));
        }
    }
}

/// Returns the identifiers of a text.
fn words_of(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// Returns the paths that a name with braces stands for, as in a shell.
fn expanded(name: &str) -> Vec<String> {
    match name.split_once('{').and_then(|(head, rest)| Some((head, rest.split_once('}')?))) {
        Some((head, (middle, tail))) => middle.split(',').map(|one| format!("{head}{one}{tail}")).collect(),
        None => vec![name.to_owned()],
    }
}

#[test]
fn names_exist() {
    let (mut paths, mut words) = (vec![], BTreeSet::new());
    collect(&of_project("."), &mut paths, &mut words);
    let text = fs::read_to_string(of_project("ARCHITECTURE.md")).expect("the document");
    let prose = text.split("```").step_by(2).collect::<String>();
    let mut missing = vec![];
    for name in prose.split('`').skip(1).step_by(2) {
        if name.contains('/') || name.split('.').next_back() == Some("rs") {
            // A path is that of the project, or its end.
            let ends = |name: &String| format!("/{}", name.trim_end_matches('/'));
            let is_there = |name: &String| paths.iter().any(|path| path.ends_with(&ends(name)));
            missing.extend(expanded(name).into_iter().filter(|name| !is_there(name)));
        } else {
            missing.extend(words_of(name).filter(|word| !words.contains(*word)).map(str::to_owned));
        }
    }
    assert!(missing.is_empty(), "ARCHITECTURE.md names what does not exist: {missing:?}");
}
