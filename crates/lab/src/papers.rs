//! The papers that can be reproduced: their experiments are shipped with the program.

/// A paper, with its experiments.
#[derive(Debug)]
pub struct Paper {
    /// The name by which it is asked for.
    pub name: &'static str,
    /// The paper.
    pub title: &'static str,
    /// The experiment files: name and text.
    pub experiments: &'static [(&'static str, &'static str)],
    /// The machine files that they name: name and text.
    pub machines: &'static [(&'static str, &'static str)],
}

macro_rules! experiment {
    ($paper:literal, $name:literal) => {
        ($name, include_str!(concat!("../../../experiments/", $paper, "/", $name, ".toml")))
    };
}

/// Every paper.
pub const PAPERS: &[Paper] = &[Paper {
    name: "zotkin-2000",
    title: "Zotkin, Keleher, Perkovic: Attacking the Bottlenecks of Backfilling Schedulers, 2000",
    experiments: &[
        experiment!("zotkin-2000", "1-easy"),
        experiment!("zotkin-2000", "2-offline"),
        experiment!("zotkin-2000", "3-shadow"),
        experiment!("zotkin-2000", "4-conservative"),
        experiment!("zotkin-2000", "5-workload"),
        experiment!("zotkin-2000", "6-guarantees"),
        experiment!("zotkin-2000", "7-starvation"),
    ],
    machines: &[],
}];

/// The paper of that name, if there is one.
pub fn find(name: &str) -> Option<&'static Paper> {
    PAPERS.iter().find(|paper| paper.name == name)
}
