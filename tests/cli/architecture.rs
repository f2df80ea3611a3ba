//! What ARCHITECTURE.md names is in the repository, and the crates depend on each other as it has them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

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

/// Returns what each package of the workspace depends on: the crates of the workspace without the prefix of their names,
/// and the others. Build and development dependencies are left out.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let crates = fs::read_dir(of_project("crates")).expect("the folder of the crates");
    let folders = crates.map(|entry| entry.expect("an entry of the folder").path());
    let of_folder = |folder: PathBuf| {
        let text = fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        let name =
            text.lines().find_map(|line| line.strip_prefix("name = \"")).expect("the name of the package");
        (short_name(name.trim_end_matches('"')), listed_dependencies(&text))
    };
    folders.chain([of_project(".")]).map(of_folder).collect()
}

fn short_name(package: &str) -> String {
    package.strip_prefix("miserly-").unwrap_or(package).to_owned()
}

/// Returns the packages below `[dependencies]` of a manifest.
fn listed_dependencies(manifest: &str) -> BTreeSet<String> {
    let lines = manifest.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    let lines = lines.take_while(|line| !line.starts_with('['));
    let name = |line: &str| line.split(['.', ' ', '=']).next().map(short_name);
    lines.filter(|line| !line.starts_with('#')).filter_map(name).filter(|name| !name.is_empty()).collect()
}

/// Returns the row of each crate in the table of parts, from the top.
fn rows() -> BTreeMap<String, usize> {
    let text = fs::read_to_string(of_project("ARCHITECTURE.md")).expect("the document");
    let rows = text.lines().skip_while(|line| *line != "| layer | crate | purpose |").skip(2);
    let rows = rows.take_while(|line| line.starts_with('|')).enumerate();
    let cell = |(row, line): (usize, &str)| Some((row, line.split('|').nth(2)?.to_owned()));
    let crates = |(row, cell): (usize, String)| {
        cell.split('`').skip(1).step_by(2).map(|name| (name.to_owned(), row)).collect::<Vec<_>>()
    };
    rows.filter_map(cell).flat_map(crates).collect()
}

#[test]
fn a_crate_uses_only_crates_in_lower_rows() {
    let rows = rows();
    for (name, uses) in dependencies() {
        let row = rows.get(&name).unwrap_or_else(|| panic!("{name} is in no row of ARCHITECTURE.md"));
        let wrong: Vec<_> =
            uses.iter().filter(|used| rows.get(*used).is_some_and(|used| used <= row)).collect();
        assert!(wrong.is_empty(), "{name} uses crates that are not in rows below its own: {wrong:?}");
    }
}

/// What crates do not link, directly or through others.
const NOT_LINKED: [(&str, &[&str]); 2] =
    [("live", &["report", "import", "maud", "comfy-table"]), ("drive", &["engine", "launch", "report"])];

/// Returns what a crate depends on, directly or through others.
fn linked<'a>(of: &'a str, dependencies: &'a BTreeMap<String, BTreeSet<String>>) -> BTreeSet<&'a str> {
    let (mut linked, mut next) = (BTreeSet::new(), vec![of]);
    while let Some(name) = next.pop() {
        if linked.insert(name) {
            next.extend(dependencies.get(name).into_iter().flatten().map(String::as_str));
        }
    }
    linked
}

#[test]
fn what_a_crate_does_not_need_is_not_linked() {
    let dependencies = dependencies();
    for (name, not_linked) in NOT_LINKED {
        let linked = linked(name, &dependencies);
        assert!(linked.contains("run") && linked.contains("serde"), "{name}: {linked:?}");
        let wrong: Vec<_> = not_linked.iter().filter(|name| linked.contains(**name)).collect();
        assert!(wrong.is_empty(), "{name} links {wrong:?}");
    }
}
