//! Contents of pages and escaping.

use miserly_report::chart::{
    Axis, Bar, BarSeries, Body, Chart, ColourBy, DataSeries, GanttJob, GroupBar, MatrixJob, MatrixPlace, Ramp,
};
use miserly_report::page::{
    Block, Claim, ClaimVerdict, Page, ReadClaim, Section, TableCell, TableData, html,
};

use crate::sample;

/// The file to which a child of this test writes the page.
const PAGE_FILE: &str = "MISERLY_TEST_PAGE";

/// Other processes, in another time zone, language, folder and terminal, write the same page.
#[test]
fn the_same_page_gives_the_same_bytes() {
    let page = html(&sample::page());
    if let Some(file) = std::env::var_os(PAGE_FILE) {
        return std::fs::write(file, page).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let environments = [("UTC", "C", "400"), ("Asia/Tokyo", "de_DE.UTF-8", "40")];
    for (number, (zone, language, columns)) in environments.into_iter().enumerate() {
        let file = folder.path().join(format!("{number}.html"));
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "page::the_same_page_gives_the_same_bytes"]).env(PAGE_FILE, &file);
        child.envs([("TZ", zone), ("LC_ALL", language), ("COLUMNS", columns)]).current_dir(folder.path());
        assert!(child.output().unwrap().status.success());
        assert!(std::fs::read_to_string(&file).unwrap() == page, "another page under {zone} and {language}");
    }
}

#[test]
fn a_page_loads_nothing() {
    // A part of a page may name another part.
    let page = html(&sample::page()).replace("url(#", "");
    assert!(page.contains("default-src 'none'"));
    for loader in [" src=", "<link", "@import", "url(", "<iframe", "fetch(", "XMLHttpRequest"] {
        assert!(!page.contains(loader), "{loader}");
    }
    let hosts: Vec<&str> = page
        .match_indices("//")
        .map(|(at, _)| &page[at..])
        .filter(|rest| rest.starts_with("//www"))
        .collect();
    assert!(
        hosts.iter().all(|host| host.starts_with("//www.w3.org/2000/svg")),
        "the namespace is only a name"
    );
}

#[test]
fn a_small_page() {
    let table = TableData {
        caption: Some("Waits".into()),
        header: vec![vec!["policy".into(), "wait".into()]],
        rows: vec![vec![TableCell::text("easy"), TableCell::number("3 102 s")]],
    };
    let claim = Claim {
        text: "It waits less.".into(),
        verdict: ClaimVerdict::Holds,
        figures: "3 102 s".into(),
        ..Claim::default()
    };
    let blocks =
        vec![Block::Text("One.\n\nTwo & three.".into()), Block::Table(table), Block::Claims(vec![claim])];
    let page = Page {
        title: "A page".into(),
        lead: Some("What came out.".into()),
        sections: vec![
            Section { heading: "First".into(), blocks },
            Section { heading: "Second".into(), blocks: Vec::new() },
        ],
        provenance: vec![("seed".into(), "7".into())],
    };
    let page = html(&page);
    let (from, to) = (page.find("<body>").unwrap(), page.find("<script").unwrap());
    insta::assert_snapshot!(page[from..to].replace("><", ">\n<"));
}

#[test]
fn text_of_strangers_is_escaped() {
    let page = html(&hostile());
    assert!(!page.contains("<img") && !page.contains("<b>"));
    assert_eq!(page.matches("<script").count(), 2, "the page's data and its own script");
    assert_eq!(page.matches("</script").count(), 2);
}

#[test]
fn charts_of_the_same_name_have_names_of_their_own() {
    let block = || Block::Chart(sample::slowdown());
    let section = Section { heading: "Twice".into(), blocks: vec![block(), block()] };
    let page = html(&Page { sections: vec![section], ..Page::default() });
    assert!(page.contains("id=\"chart-slowdown\"") && page.contains("id=\"chart-slowdown-2\""));
}

#[test]
fn a_chart_under_its_own_title_has_one_heading() {
    let chart = sample::slowdown();
    let section =
        |heading: &str| Section { heading: heading.into(), blocks: vec![Block::Chart(chart.clone())] };
    let page = html(&Page { sections: vec![section(&chart.title), section("Other")], ..Page::default() });
    assert_eq!(page.matches("</h2>").count(), 2);
    assert_eq!(page.matches(&format!(">{}</h2>", chart.title)).count(), 1);
    assert_eq!(page.matches(&format!(">{}</strong>", chart.title)).count(), 1);
}

/// Returns a page in which every text contains markup.
pub(crate) fn hostile() -> Page {
    let evil = || {
        "</title></style></script>--><script>window.harm=1</script><img src=x onerror=window.harm=1>\"'<b>&"
            .to_owned()
    };
    let axis = || Axis::linear(evil());
    let names = || Axis::category(evil(), vec![evil(), evil()]);
    let line = |_| DataSeries::line(evil(), vec![(0.0, 1.0), (1.0, 2.0)]);
    let job = GanttJob {
        number: 1,
        pes: vec![(0, 1)],
        submit: 0.0,
        start: 0.0,
        end: 5.0,
        user: Some(evil()),
        reason: evil(),
        ..GanttJob::default()
    };
    let other = GanttJob { number: 2, reason: evil() + "2", start: 5.0, end: 9.0, ..job.clone() };
    let place = MatrixPlace { job: 0, slot: 0, own: true, from: 0.0, to: 9.0, pes: vec![(0, 1)] };
    let in_matrix = vec![MatrixJob { number: 1, submit: 0.0, user: Some(evil()) }];
    let bodies = [
        (axis(), axis(), Body::Lines { series: (0..3).map(line).collect() }),
        (names(), axis(), Body::Bars { bins: vec![Bar { from: -0.4, to: 0.4, value: 3.0 }] }),
        (
            names(),
            axis(),
            Body::Groups {
                series: vec![BarSeries {
                    name: evil(),
                    bars: vec![Some(GroupBar { value: 3.0, interval: Some([2.0, 4.0]) }), None],
                }],
            },
        ),
        (names(), names(), Body::Heat { cells: vec![vec![Some(1.0), None]], ramp: Ramp::Log, decimals: 1 }),
        (
            axis(),
            axis(),
            Body::Gantt {
                tops: [0; 3],
                by: ColourBy::Reason,
                queue: vec![],
                procs: 2,
                hosts: vec![(0, evil()), (1, evil())],
                slots: 1,
                from: 0.0,
                to: 10.0,
                jobs: vec![job, other],
            },
        ),
        (
            axis(),
            axis(),
            Body::Matrix { procs: 2, from: 0.0, to: 10.0, jobs: in_matrix, places: vec![place] },
        ),
    ];
    let charts =
        bodies.map(|(x, y, body)| Chart { id: evil(), title: evil(), caption: Some(evil()), x, y, body });
    let table = TableData {
        caption: Some(evil()),
        header: vec![vec![evil(), String::new()], vec![evil(), evil()]],
        rows: vec![vec![TableCell::text(evil()), TableCell::number(evil())]],
    };
    let readings = vec![ReadClaim { name: evil(), verdict: ClaimVerdict::Holds, figures: evil() }];
    let (section, why) = (evil(), evil());
    let claim =
        Claim { text: evil(), section, verdict: ClaimVerdict::Unknown, figures: evil(), why, readings };
    let blocks = [Block::Text(evil()), Block::Table(table), Block::Claims(vec![claim])];
    let blocks = blocks.into_iter().chain(charts.map(Block::Chart)).collect();
    Page {
        title: evil(),
        lead: Some(evil()),
        sections: vec![Section { heading: evil(), blocks }, Section { heading: evil(), blocks: Vec::new() }],
        provenance: vec![(evil(), evil())],
    }
}
