//! The past, the present and the promised future of a machine, as data.
//!
//! A source (a daemon, a simulated run, a cluster) gives [`Facts`]. A page or a terminal shows pure functions of them: the state at
//! an instant ([`Moment`]) with a map of its processors ([`HostNow`]), a sentence for each job ([`Sentences`]), the changes ([`changes()`]), and the bars of a chart at any level
//! of detail ([`Bars`], [`Tile`]) with their colours and curves ([`Legend`], [`Curves`]). [`usage_sums`] adds up what finished jobs of a daemon used.
//!
//! Times are milliseconds: since 1970, or since the start of a log without a date ([`Clock`]).

mod account;

mod bars;

mod changes;

mod clock;

mod daemon;

mod earlier;

mod facts;

mod headline;

mod holes;

mod hosts;

mod instant;

mod lanes;

mod list_row;

mod lists;

mod moment;

mod moves;

mod plain;

mod scene;

mod step;

mod tile;

mod usage;

mod use_of_pool;

mod words;

pub use account::{Account, ForecastAccount, Missed, missed_promise, promise_cause};
pub use bars::{Bar, Bars, Group, Kind};
pub use changes::{Change, changes};
pub use clock::{Clock, span};
pub use daemon::{DaemonFacts, details, job_of, word, word_of_exit, word_of_kill};
pub use facts::{Cause, Facts, HostFacts, Job, PoolFacts, RUN_NUMBERS, State};
pub use headline::{Phrase, PhraseList, headline};
pub use holes::Hole;
pub use hosts::{CpuUse, HostNow, HostPart};
pub use list_row::{ArrayCounts, Row};
pub use lists::{ListPart, Lists, ListsPart, ListsRequest};
pub use moment::{Line, Moment, PoolNow};
pub use moves::{MOVES_NAMED, moved_promises};
pub use plain::plain;
pub use scene::{Card, ColourBy, CurvePart, Curves, Entry, Inks, Legend, Opening, Rgb, card};
pub use step::whole_step;
pub use tile::{Shade, Tile, TileBar, TileRequest};
pub use usage::{UsageBy, UsageSums, cpu_hours, usage_sums};
pub use words::{Sentences, cause_text, counted};
