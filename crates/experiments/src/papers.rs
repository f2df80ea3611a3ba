//! The papers that can be reproduced: their experiments are shipped with the program.

/// The page of the Parallel Workloads Archive, which has the logs of the papers.
pub const ARCHIVE: &str = "https://www.cs.huji.ac.il/labs/parallel/workload/logs.html";

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
        ($name, include_str!(concat!("../papers/", $paper, "/", $name, ".toml")))
    };
}

macro_rules! machine {
    ($paper:literal, $name:literal) => {
        ($name, include_str!(concat!("../papers/", $paper, "/", $name)))
    };
}

/// Every paper.
pub const PAPERS: &[Paper] = &[
    Paper {
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
    },
    Paper {
        name: "chiang-2001",
        title: "Chiang, Vernon: Production Job Scheduling for Parallel Shared Memory Systems, 2001",
        experiments: &[
            experiment!("chiang-2001", "1-lsf"),
            experiment!("chiang-2001", "2-backfill"),
            experiment!("chiang-2001", "3-priorities"),
            experiment!("chiang-2001", "4-immediate"),
            experiment!("chiang-2001", "5-eqspatial"),
            experiment!("chiang-2001", "6-hpc2n"),
        ],
        machines: &[
            machine!("chiang-2001", "o2k-one-host.toml"),
            machine!("chiang-2001", "hpc2n-pooled.toml"),
            machine!("chiang-2001", "hpc2n-nodes.toml"),
        ],
    },
    Paper {
        name: "kettimuthu-2002",
        title: "Kettimuthu, Subramani, Srinivasan, Gopalasamy, Panda, Sadayappan: Selective Preemption Strategies for Parallel Job Scheduling, 2002",
        experiments: &[
            experiment!("kettimuthu-2002", "1-no-suspension"),
            experiment!("kettimuthu-2002", "2-exact"),
            experiment!("kettimuthu-2002", "3-estimates"),
            experiment!("kettimuthu-2002", "4-overhead"),
            experiment!("kettimuthu-2002", "5-parts"),
            experiment!("kettimuthu-2002", "6-load"),
            experiment!("kettimuthu-2002", "7-placing"),
        ],
        machines: &[],
    },
    Paper {
        name: "feitelson-1996",
        title: "Feitelson: Packing Schemes for Gang Scheduling, 1996",
        experiments: &[
            experiment!("feitelson-1996", "1-workload"),
            experiment!("feitelson-1996", "2-slowdown"),
            experiment!("feitelson-1996", "3-without"),
            experiment!("feitelson-1996", "4-sequences"),
            experiment!("feitelson-1996", "5-model"),
            experiment!("feitelson-1996", "6-costs"),
            experiment!("feitelson-1996", "7-logs"),
            experiment!("feitelson-1996", "8-open"),
        ],
        machines: &[],
    },
    Paper {
        name: "tsafrir-2007",
        title: "Tsafrir, Etsion, Feitelson: Backfilling Using System-Generated Predictions Rather than User Runtime Estimates, TPDS 18(6), 2007",
        experiments: &[
            experiment!("tsafrir-2007", "1-predictions"),
            experiment!("tsafrir-2007", "2-reservations"),
        ],
        machines: &[],
    },
    Paper {
        name: "gaussier-2015",
        title: "Gaussier, Glesser, Reis, Trystram: Improving Backfilling by Using Machine Learning to Predict Running Times, SC 2015",
        experiments: &[
            experiment!("gaussier-2015", "1-predictors"),
            experiment!("gaussier-2015", "2-who-pays"),
            experiment!("gaussier-2015", "3-guarded"),
        ],
        machines: &[],
    },
];

/// The paper of that name, if there is one.
pub fn find(name: &str) -> Option<&'static Paper> {
    PAPERS.iter().find(|paper| paper.name == name)
}
