//! The JSON model that the daemon and its clients share.
//!
//! Wall time is in UTC. Memory is in bytes. Durations are in seconds, with a fraction if they have
//! one.

mod shadow;

pub(crate) mod submission;

mod output;

mod job;

mod answer;

mod event;

mod request;

mod lossless;

mod change;

mod signal;

mod mail;

mod shown;

mod step;

mod usage;

mod reservation;

mod limit;

mod what_if;

mod job_ref;

mod selection;

pub use answer::{
    Accepted, AdoptedAttempt, ConfigurationReading, CriticalPriority, ForecastRecord, GroupUsage, JobIds,
    NoPromise, Pool, Pools, Possible, Pressure, PressureOn, Problem, ProblemCode, QueueStatus, Quote,
    SetAsideJob, SharedCpus, Slice, SlurmTables, Stall, StateDamage, Status, Submitted, Unenforced,
    UserUsage,
};
pub use change::{JobChange, Modification, ModifyRequest, MovedPromise, Moves, NewEnvironment, TimeBound};
pub use event::{DaemonEvent, ForecastsEvent, JobForecast, JobsEvent};
pub use job::{
    AtRisk, Exit, Failure, ForecastView, JobAllocation, JobView, JudgedPromise, Judgement, KilledBy,
    LateStart, LostBy, MissedPromise, Overdue, OverdueCause, Phase, PromiseChange, PromiseChangeReason,
    PromiseView, Slots, StartReason, WaitReason, Window, number_ranges,
};
pub use job_ref::{JobRef, job_ranges, job_refs};
pub(crate) use job_ref::{digits, index_ranges, split_outside};
pub use limit::{LimitUnit, LimitUse, LimitsReport};
pub use lossless::PathText;
pub use mail::{Mail, MailEvent, domain_of, is_address};
pub use output::OutputNames;
pub use request::{
    ATTACH_PROTOCOL, CancelRequest, DrainRequest, ExtendRequest, Filter, HoldStartsRequest, OUTPUT_LENGTH,
    OUTPUT_PART, OutputRequest, ResizeRequest, SENDS_MAIL, TakeBackRequest, listing,
};
pub use reservation::{RemoveReservation, Reservation, ReservedTime};
pub use selection::{
    ChangeRequest, ChangedJobs, RefusedJobs, Selection, SkippedJobs, StateName, matches_pattern,
};
pub use shadow::{ShadowFilter, ShadowGroup, ShadowReport, ShadowView};
pub use shown::{is_blank, is_invisible};
pub use signal::{EarlySignal, JobSignal, SignalRequest};
pub use step::{BeginStepRequest, EndStepRequest, StepEnd, StepNumber, StepView};
pub use submission::{
    Array, Condition, IndexRange, Interaction, RawVariable, Retry, Submission, When, program_name,
};
pub use usage::{AttemptUsage, JobUsage, Usage, UsageSource};
pub use what_if::{WhatIf, WhatIfAnswer, WhatIfDifference, WhatIfJob};

/// Returns whether a text can be the type of a GPU: letters, digits, `-`, `_` and `.`, as in `1g.10gb`.
pub fn is_gpu_type(text: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&letter);
    !text.is_empty() && text.chars().all(is_plain)
}

/// Returns whether a text is a plain name: letters, digits, `-` and `_`, at least one.
pub fn is_plain_name(text: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    !text.is_empty() && text.chars().all(is_plain)
}
