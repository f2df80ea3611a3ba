//! The past, the present and the promised future of a machine, as data.
//!
//! A source (a daemon, a simulated run, a cluster) gives [`Facts`]. A page or a terminal shows pure functions of them: the state at
//! an instant ([`Moment`]) with a map of its processors ([`HostNow`]), a sentence for each job ([`Sentences`]), the changes ([`changes()`]), and the bars of a chart at any level
//! of detail ([`Bars`], [`Tile`]) with their colours and curves. [`usage_sums`] adds up what finished jobs of a daemon used.
//!
//! Times are milliseconds: since 1970, or since the start of a log without a date ([`Clock`]).

mod account;

mod changes;

mod daemon;

mod dependencies;

mod earlier;

mod facts;

mod headline;

mod holes;

mod hosts;

mod instant;

mod job_detail;

mod list_row;

mod lists;

mod moment;

mod moves;

mod plain;

mod step;

mod usage;

mod use_of_pool;

mod words;

pub use account::{Account, ForecastAccount, Missed, missed_promise, promise_cause};
pub use changes::{Change, changes};
pub use daemon::{DaemonFacts, details, job_of, word, word_of_exit, word_of_kill};
pub use dependencies::{Dependencies, DependencyNode, dependencies};
pub use facts::{Facts, HostFacts, PoolFacts};
pub use headline::{Phrase, PhraseList, headline};
pub use holes::Hole;
pub use hosts::{CpuUse, HostNow, HostPart};
pub use instant::parse_instant;
pub use job_detail::{JobDetail, PromiseStep, UseOfJob, job_detail};
pub use list_row::{ArrayCounts, Row, with_arrays};
pub use lists::{Column, LISTS, ListPart, Lists, ListsPart, ListsRequest, Sort, Which};
pub use moment::{Line, Moment, PoolNow};
pub use moves::{MOVES_NAMED, moved_promises};
pub use plain::plain;
pub use usage::{UsageBy, UsageSums, cpu_hours, usage_sums};
pub use words::{Sentences, cause_text};

pub use miserly_scene::{
    ANY_GPU, Bar, Bars, Card, Cause, Clock, Group, Job, Kind, Part, RUN_NUMBERS, State, Stay, Tile, TileBar,
    TileRequest, counted, span, whole_step,
};
