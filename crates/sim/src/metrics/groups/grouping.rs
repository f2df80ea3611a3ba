//! The groupings of jobs, and the group of each job.

use std::fmt;
use std::str::FromStr;

use miserly_classes::Category;
use miserly_classes::lsf::Class;
use miserly_core::{Kind, Request, Span};

use super::own::{OwnGroup, OwnRanges};
use super::quality::Quality;
use crate::finished::Finished;
use crate::job::LoggedStatus;
use crate::label::{Label, LabelValue};

/// A property by which the jobs of a run are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Grouping {
    /// Runtime and width: the sixteen categories of Kettimuthu et al.
    Category,
    /// The user's number.
    User,
    /// The queue's number.
    Queue,
    /// The actual runtime in ranges of equal size on a logarithmic scale, as in Chiang and Vernon's
    /// Figure 5.
    ///
    /// The first range is under a second, the others follow powers of two.
    RuntimeBin,
    /// The request: the twelve classes of the NCSA Origin 2000, Chiang and Vernon's Table 1.
    LsfClass,
    /// The quality of the estimate: Kettimuthu et al.'s good and bad estimators.
    Estimate,
    /// The quality of the estimate, then runtime and width.
    EstimateCategory,
    /// The end of the job as its log has it.
    Status,
    /// A property that the log has beside the request.
    Label(Label),
    /// Ranges that the user chooses, of processors, of actual runtimes, of time limits, or of two of these.
    Own(OwnRanges),
}

/// A group of jobs. The order is the natural one: small before large, unknown last.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum GroupKey {
    /// A range of runtimes and of widths.
    Category(Category),
    /// The user or queue of that number.
    Number(u32),
    /// The value of a property.
    Label(LabelValue),
    /// The log does not have the user, the queue or the property.
    Unknown,
    /// Runtimes from 2^(n-1) seconds to less than 2^n; under a second with n = 0.
    Bin(u32),
    /// A class of the NCSA Origin 2000.
    LsfClass(Class),
    /// A request beyond all of these classes.
    BeyondClasses,
    /// Estimates of this quality.
    Estimate(Quality),
    /// Estimates of this quality, for a range of runtimes and of widths.
    EstimateCategory(Quality, Category),
    /// Jobs with this end.
    Status(LoggedStatus),
    /// Ranges that the user chose.
    Own(OwnGroup),
}

/// A text that is no [`Grouping`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GroupingError {
    /// A word that names none.
    #[error(
        "unknown grouping {0:?}; it must be one of category, user, group, queue, partition, runtime-bin, lsf-class, estimate, estimate-category, status, nodes, gpus, gpu_type, name, account, features, or ranges such as procs:1,8,64, runtime:1h,12h or time-limit:4h,1d"
    )]
    Unknown(String),
    /// Ranges that are wrong, and what is wrong.
    #[error(
        "{0:?}: {1}; write ranges as procs:1,8,64, runtime:1h,12h or time-limit:4h,1d, or as two of them with a + between"
    )]
    Ranges(String, String),
}

impl Grouping {
    /// Every grouping with a name.
    pub const ALL: [Grouping; 16] = [
        Grouping::Category,
        Grouping::User,
        Grouping::Queue,
        Grouping::RuntimeBin,
        Grouping::LsfClass,
        Grouping::Estimate,
        Grouping::EstimateCategory,
        Grouping::Status,
        Grouping::Label(Label::Group),
        Grouping::Label(Label::Partition),
        Grouping::Label(Label::Nodes),
        Grouping::Label(Label::Gpus),
        Grouping::Label(Label::GpuType),
        Grouping::Label(Label::Name),
        Grouping::Label(Label::Account),
        Grouping::Label(Label::Features),
    ];

    /// Returns the name of the grouping; `own` for ranges of the user.
    ///
    /// The text of those ranges is that of [`Display`](fmt::Display).
    pub const fn as_str(self) -> &'static str {
        match self {
            Grouping::Category => "category",
            Grouping::User => "user",
            Grouping::Queue => "queue",
            Grouping::RuntimeBin => "runtime-bin",
            Grouping::LsfClass => "lsf-class",
            Grouping::Estimate => "estimate",
            Grouping::EstimateCategory => "estimate-category",
            Grouping::Status => "status",
            Grouping::Label(label) => label.name(),
            Grouping::Own(_) => "own",
        }
    }

    /// Returns whether the groups are the values of the log, as many as it has, without a relation between
    /// neighbours.
    pub const fn is_by_value(self) -> bool {
        matches!(self, Grouping::User | Grouping::Queue | Grouping::Label(_))
    }

    /// Returns whether the log has the groups as numbers, which its header may name.
    pub const fn is_numbered(self) -> bool {
        matches!(self, Grouping::User | Grouping::Queue | Grouping::Label(Label::Group | Label::Partition))
    }

    /// Returns the group of a job.
    pub fn key(self, job: &Finished) -> GroupKey {
        let run = job.runtime;
        let number = |number: Option<u32>| number.map_or(GroupKey::Unknown, GroupKey::Number);
        let category = || Category::for_job(run, job.request.procs());
        let quality = || Quality::new(job.request.estimate, run);
        match self {
            Grouping::Category => GroupKey::Category(category()),
            Grouping::User => number(job.request.user),
            Grouping::Queue => number(job.request.queue),
            Grouping::RuntimeBin => GroupKey::Bin(bin(run)),
            Grouping::LsfClass => class(&job.request),
            Grouping::Estimate => GroupKey::Estimate(quality()),
            Grouping::EstimateCategory => GroupKey::EstimateCategory(quality(), category()),
            Grouping::Status => GroupKey::Status(job.status),
            Grouping::Label(label) => {
                let value = job.labels.iter().find(|(of, _)| *of == label);
                value.map_or(GroupKey::Unknown, |(_, value)| GroupKey::Label(value.clone()))
            }
            Grouping::Own(ranges) => GroupKey::Own(ranges.group(job)),
        }
    }

    /// Returns the groups that are shown even without jobs: those of a table in the literature.
    pub(super) fn fixed(self) -> Vec<GroupKey> {
        match self {
            Grouping::Category => Category::all().map(GroupKey::Category).collect(),
            Grouping::LsfClass => {
                Class::ALL.into_iter().map(GroupKey::LsfClass).chain([GroupKey::BeyondClasses]).collect()
            }
            Grouping::Estimate => Quality::ALL.map(GroupKey::Estimate).into(),
            Grouping::EstimateCategory => {
                let of = |quality| Category::all().map(move |of| GroupKey::EstimateCategory(quality, of));
                Quality::ALL.into_iter().flat_map(of).collect()
            }
            Grouping::Status => LoggedStatus::ALL.map(GroupKey::Status).into(),
            Grouping::Own(ranges) => ranges.all().map(GroupKey::Own).collect(),
            Grouping::User | Grouping::Queue | Grouping::RuntimeBin | Grouping::Label(_) => Vec::new(),
        }
    }
}

/// Returns the bit length of the whole seconds: 0 under a second, else one more than the exponent
/// of the power of two at or below it.
fn bin(run: Span) -> u32 {
    u64::BITS - run.secs().unsigned_abs().leading_zeros()
}

/// Returns the class of a request.
fn class(request: &Request) -> GroupKey {
    let memory = request.demand.get(Kind::Memory);
    Class::for_request(request.procs(), memory, request.estimate)
        .map_or(GroupKey::BeyondClasses, GroupKey::LsfClass)
}

impl GroupKey {
    /// Returns the actual runtimes of a bin in seconds: the lower bound, and the exclusive upper
    /// bound.
    pub fn runtimes(&self) -> Option<(u64, u64)> {
        match self {
            GroupKey::Bin(0) => Some((0, 1)),
            GroupKey::Bin(bin) => Some((1 << (bin - 1), 1 << *bin)),
            _ => None,
        }
    }
}

impl fmt::Display for GroupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, self.runtimes()) {
            (_, Some((from, to))) => write!(f, "{from}-{to}s"),
            (GroupKey::Category(category), _) => category.fmt(f),
            (GroupKey::Number(number), _) => number.fmt(f),
            (GroupKey::Label(value), _) => f.write_str(value.as_str()),
            (GroupKey::LsfClass(class), _) => class.fmt(f),
            (GroupKey::Estimate(quality), _) => f.write_str(quality.name()),
            (GroupKey::EstimateCategory(quality, category), _) => {
                write!(f, "{} {category}", quality.name())
            }
            (GroupKey::Status(status), _) => f.write_str(status.name()),
            (GroupKey::Own(group), _) => group.fmt(f),
            (GroupKey::BeyondClasses, _) => f.write_str("beyond"),
            (GroupKey::Unknown | GroupKey::Bin(_), _) => f.write_str("unknown"),
        }
    }
}

impl fmt::Display for Grouping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Grouping::Own(ranges) => ranges.fmt(f),
            named => f.write_str(named.as_str()),
        }
    }
}

impl FromStr for Grouping {
    type Err = GroupingError;

    fn from_str(word: &str) -> Result<Grouping, GroupingError> {
        let is_named = |name: &str| name == word || name.replace('_', "-") == word;
        let named = Grouping::ALL.into_iter().find(|grouping| is_named(grouping.as_str()));
        match named {
            Some(named) => Ok(named),
            None if word.contains(':') => OwnRanges::parse(word).map(Grouping::Own),
            None => Err(GroupingError::Unknown(word.into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_powers_of_two_seconds() {
        let second = Span::from_secs(1).unwrap().ticks();
        let cases = [
            (0, (0, 1)),
            (second - 1, (0, 1)),
            (second, (1, 2)),
            (2 * second - 1, (1, 2)),
            (2 * second, (2, 4)),
            (3600 * second, (2048, 4096)),
            (4096 * second, (4096, 8192)),
        ];
        for (ticks, range) in cases {
            assert_eq!(GroupKey::Bin(bin(Span::from_ticks(ticks))).runtimes(), Some(range), "{ticks}");
        }
        assert_eq!(GroupKey::Bin(12).to_string(), "2048-4096s");
        assert!(GroupKey::Bin(bin(Span::MAX)).runtimes().is_some());
    }

    #[test]
    fn words() {
        for grouping in Grouping::ALL {
            assert_eq!(grouping.as_str().parse(), Ok(grouping));
        }
        let problem = "size".parse::<Grouping>().unwrap_err().to_string();
        assert!(Grouping::ALL.iter().all(|grouping| problem.contains(grouping.as_str())), "{problem}");
    }
}
