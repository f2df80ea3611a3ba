#![doc = include_str!("../README.md")]

mod ahead;

pub mod swf;

mod compression;

mod converted;

mod sorted;

mod trace;

mod filter;

mod estimates;

mod jobs;

mod shake;

mod local_time;

mod dates;

pub mod describe;

pub mod check;

pub mod o2k;

pub mod generate;

mod interactive;

mod put_back;

mod resample;
pub mod slice;

mod feedback;

mod whole;

pub use check::{CheckReport, check};
pub use compression::Compression;
pub use converted::ConvertedLog;
pub use dates::LogDates;
pub use describe::{Description, describe};
pub use estimates::{Estimates, EstimatesError, Factor};
pub use feedback::{Feedback, NoFeedback, THINK_MOST, preceding};
pub use filter::{FieldFilter, FilterError};
pub use interactive::{Interactive, InteractiveError};
pub use jobs::{ArrivalScaling, Job, JobOptions, Jobs, LineCounts, Overrun, ProcsField};
pub use put_back::{PutBackError, Removed, put_back};
pub use resample::{ResampleError, Resampling, resample};
pub use shake::{MOST_SHAKE, shaken};
pub use sorted::{Sorted, SortedReader, Sorter};
pub use trace::{Stored, Survey, Trace, TraceError};
pub use whole::WholeLog;
