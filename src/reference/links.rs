//! The links of the documents point to files and headings that exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::markdown::anchor;
use super::{generated, of_project};

/// The documents outside docs.
const DOCUMENTS: [&str; 5] =
    ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", ".ci/testing.md"];

/// The links and the anchors of a document.
#[derive(Debug, Default)]
struct Document {
    links: Vec<String>,
    anchors: BTreeSet<String>,
}

impl Document {
    fn parse(text: &str) -> Document {
        let mut document = Document::default();
        let mut heading: Option<String> = None;
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let anchor = anchor(&heading.take().unwrap_or_default());
                    // As the site and code hosts do it: a second heading of the same text has a number.
                    let count = known.entry(anchor.clone()).or_default();
                    document.anchors.insert(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
                    *count += 1;
                }
                Event::Text(text) | Event::Code(text) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&text);
                    }
                }
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    document.links.push(dest_url.into_string());
                }
                Event::Html(html) | Event::InlineHtml(html) => document.links.extend(links_of_html(&html)),
                _ => {}
            }
        }
        document
    }
}

fn links_of_html(html: &str) -> Vec<String> {
    let after = |name| html.split(name).skip(1).filter_map(|rest: &str| rest.split('"').next());
    after("href=\"").chain(after("src=\"")).map(str::to_owned).collect()
}

/// Returns the path without `.` and `..`, or nothing if it leaves the project.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut result = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                if !result.pop() {
                    return None;
                }
            }
            part => result.push(part),
        }
    }
    Some(result)
}

/// Returns the written Markdown files of a folder, by their paths in the project.
fn pages(folder: &str) -> Vec<String> {
    let mut pages = vec![];
    for entry in fs::read_dir(of_project(folder)).expect("a folder") {
        let entry = entry.expect("an entry");
        let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            pages.extend(self::pages(&path));
        } else if Path::new(&path).extension().is_some_and(|extension| extension == "md")
            && !is_generated(Path::new(&path))
        {
            pages.push(path);
        }
    }
    pages.sort();
    pages
}

/// Returns the documents in the folder, and the generated pages as they are now.
fn documents() -> BTreeMap<PathBuf, Document> {
    let paths = DOCUMENTS.iter().map(|&path| path.to_owned()).chain(pages("docs"));
    let read = |path: String| {
        let text = fs::read_to_string(of_project(&path)).expect("a document");
        (PathBuf::from(path), Document::parse(&text))
    };
    let generated = generated().into_iter().map(|(path, text)| (PathBuf::from(path), Document::parse(&text)));
    paths.map(read).chain(generated).collect()
}

/// Returns whether a page is generated, and so not in the repository.
fn is_generated(path: &Path) -> bool {
    path.parent() == Some(Path::new("docs/reference")) && !path.ends_with("README.md")
}

/// Returns the problem of a link of the document at `path`, if it has one.
fn problem(documents: &BTreeMap<PathBuf, Document>, path: &Path, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (target, fragment) = link.split_once('#').map_or((link, None), |(target, of)| (target, Some(of)));
    let target = match target {
        "" => path.to_owned(),
        target => match normal(&path.parent().unwrap_or(Path::new("")).join(target)) {
            Some(target) => target,
            None => return Some("leaves the project".to_owned()),
        },
    };
    if path.starts_with("docs") && !target.starts_with("docs") {
        return Some("leaves the site: write a path of the project as code".to_owned());
    }
    if is_generated(&target) && !is_generated(path) && path != Path::new("docs/SUMMARY.md") {
        return Some("is not in the repository: name the command, or link to reference/README.md".to_owned());
    }
    if !documents.contains_key(&target) && !of_project(&target.to_string_lossy()).exists() {
        return Some(format!("no file {}", target.display()));
    }
    let fragment = fragment?;
    let known = documents.get(&target).is_some_and(|document| document.anchors.contains(fragment));
    (!known).then(|| format!("no heading #{fragment} in {}", target.display()))
}

#[test]
fn every_link_has_a_target() {
    let documents = documents();
    let mut problems = vec![];
    for (path, document) in &documents {
        for link in &document.links {
            if let Some(problem) = problem(&documents, path, link) {
                problems.push(format!("{}: {link}: {problem}", path.display()));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_page_is_in_the_summary() {
    let summary = Document::parse(&fs::read_to_string(of_project("docs/SUMMARY.md")).expect("a summary"));
    let listed: BTreeSet<String> = summary.links.iter().map(|link| format!("docs/{link}")).collect();
    let mut pages: BTreeSet<String> = pages("docs").into_iter().chain(generated().into_keys()).collect();
    pages.remove("docs/SUMMARY.md");
    assert_eq!(listed, pages);
}

#[test]
fn links_and_anchors_of_a_document() {
    let text = "# A `b` (c)\n## A b c\n[x](y.md#z) ![p](q.svg)\n\n<img src=\"r.svg\">\n\n`[no](link)`\n";
    let document = Document::parse(text);
    assert_eq!(document.links, ["y.md#z", "q.svg", "r.svg"]);
    assert_eq!(document.anchors.into_iter().collect::<Vec<_>>(), ["a-b-c", "a-b-c-1"]);
}

#[test]
fn a_link_without_a_target_is_a_problem() {
    let documents = documents();
    let check = |path: &str, link: &str, expect: Option<&str>| {
        assert_eq!(problem(&documents, Path::new(path), link).as_deref(), expect, "{path}: {link}");
    };
    check("README.md", "docs/units.md", None);
    check("README.md", "https://example.org/#x", None);
    check("README.md", "docs/none.md", Some("no file docs/none.md"));
    check("README.md", "docs/units.md#none", Some("no heading #none in docs/units.md"));
    check("docs/units.md", "#none", Some("no heading #none in docs/units.md"));
    check("docs/units.md", "../src", Some("leaves the site: write a path of the project as code"));
    check("docs/SUMMARY.md", "reference/policies.md#easy", None);
    check(
        "docs/reference/json.md",
        "policies.md#none",
        Some("no heading #none in docs/reference/policies.md"),
    );
    let absent = "is not in the repository: name the command, or link to reference/README.md";
    check("docs/units.md", "reference/policies.md#easy", Some(absent));
    check("README.md", "../x", Some("leaves the project"));
}
