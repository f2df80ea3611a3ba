//! The comments of jobs, in which users read the promises.

use std::collections::{BTreeMap, BTreeSet};

use miserly_slurm::{Cluster, Comments, Configuration, Detail, Job, Slurm};
use nix::unistd::{Uid, User};
use serde::{Deserialize, Serialize};

use crate::Order;
use crate::scheduler::{waiting_groups, waiting_tasks};

/// The mark of the part of a comment that is this program's.
pub(crate) const MARK: &str = "miserly: ";

/// What stands between the comment of others and that part.
const BEHIND: &str = " | ";

/// The begin of the comment on a job with a promise.
pub(crate) const STARTS_BY: &str = "starts by ";

/// The begin of the comment on a job that is placed.
pub(crate) const STARTS_ON: &str = "starts on ";

/// The begin of the comment on a job that runs ahead of its start.
pub(crate) const AHEAD: &str = "runs on idle nodes ahead of its start";

/// The comment on a job that is suspended for another one.
pub(crate) const SUSPENDED: &str = "is suspended for a short time, for a job that begins";

/// The comment on a job that runs after one of these.
pub(crate) const RUNS: &str = "runs";

/// The begin of the comment on a job without a promise.
pub(crate) const WAITS: &str = "waits";

/// The begin of the comment on a job without a place in the plan.
pub(crate) const NOT_PLANNED: &str = "not planned: ";

/// The begin of the comment on waiting tasks of an array that have promises.
pub(crate) const FIRST_TASK: &str = "the first of these tasks ";

/// What the part of this program begins with. Anything else is a text of others.
const BEGINS: [&str; 7] = [STARTS_BY, STARTS_ON, SUSPENDED, RUNS, WAITS, NOT_PLANNED, FIRST_TASK];

/// One of the comments of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CommentField {
    /// That of its user. The driver writes behind the text of the user.
    Comment,
    /// That of administrators, which only they may write.
    AdminComment,
}

impl CommentField {
    /// Returns the comment that a driver of this user may write into. It is not known while the accounting is away.
    pub fn for_user(slurm: &Slurm, configuration: &Configuration, user: u32) -> Option<CommentField> {
        let name = User::from_uid(Uid::from_raw(user)).ok().flatten().map(|user| user.name);
        let name = name.unwrap_or_else(|| user.to_string());
        let may = slurm.is_administrator(configuration, user, &name).ok()?;
        Some(if may { CommentField::AdminComment } else { CommentField::Comment })
    }

    /// Returns the name of the field for `scontrol`.
    pub fn key(self) -> &'static str {
        match self {
            CommentField::Comment => "Comment",
            CommentField::AdminComment => "AdminComment",
        }
    }

    /// Returns this comment of a job.
    pub(crate) fn text(self, form: &Detail) -> Option<&str> {
        match self {
            CommentField::Comment => form.comment.as_deref(),
            CommentField::AdminComment => form.admin_comment.as_deref(),
        }
    }
}

/// The part of a comment that a driver wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DriverComment {
    /// The latest start, if it is promised.
    pub starts_by: Option<String>,
    /// The likely start, if there is a forecast.
    pub likely: Option<String>,
    /// Anything else: the nodes of its start, or why it is not planned.
    pub why: Option<String>,
}

impl DriverComment {
    /// Reads the comments of a job. Returns `None` if no driver wrote a part of them.
    ///
    /// Users cannot write the comment of administrators, so that one counts first.
    pub fn read(comments: &Comments) -> Option<DriverComment> {
        [&comments.admin, &comments.user].into_iter().find_map(|text| DriverComment::parse(text.as_deref()?))
    }

    fn parse(comment: &str) -> Option<DriverComment> {
        let words = comment[comment.rfind(MARK)? + MARK.len()..].trim_end_matches('"');
        let (words, likely) = match words.split_once(", likely ") {
            Some((words, likely)) => (words, Some(likely.to_owned())),
            None => (words, None),
        };
        let starts_by = words.strip_prefix(STARTS_BY).map(str::to_owned);
        let why = (starts_by.is_none() && words != WAITS).then(|| words.to_owned());
        Some(DriverComment { starts_by, likely, why })
    }

    /// Returns whether the job runs ahead of its start.
    pub fn is_opportunistic(&self) -> bool {
        self.why.as_ref().is_some_and(|why| why.starts_with(AHEAD))
    }
}

/// Returns a comment with these words of this program behind the text of others.
pub(crate) fn with_words(own: Option<&str>, words: &str) -> String {
    own.map_or_else(|| format!("{MARK}{words}"), |own| format!("{own}{BEHIND}{MARK}{words}"))
}

/// Returns whether a comment has a part of this program.
pub(crate) fn has_driver_comment(comment: &str) -> bool {
    own_end(comment).is_some()
}

/// Returns where the text of others ends in a comment with a part of this program.
fn own_end(comment: &str) -> Option<usize> {
    let is_driver = |at: usize| BEGINS.iter().any(|begin| comment[at + MARK.len()..].starts_with(begin));
    comment.match_indices(MARK).filter(|(at, _)| is_driver(*at)).find_map(|(at, _)| {
        let own = &comment[..at];
        if own.is_empty() { Some(0) } else { own.strip_suffix(BEHIND).map(str::len) }
    })
}

/// Returns a comment without the part of this program.
pub(crate) fn own_comment(comment: Option<&str>) -> Option<String> {
    let own = comment.map(|comment| &comment[..own_end(comment).unwrap_or(comment.len())]);
    own.filter(|own| !own.is_empty()).map(str::to_owned)
}

/// Returns a form with comments without the part of this program.
pub(crate) fn with_own_comments(form: &Detail) -> Detail {
    let [comment, admin_comment] =
        [&form.comment, &form.admin_comment].map(|text| own_comment(text.as_deref()));
    Detail { comment, admin_comment, ..form.clone() }
}

/// Returns the last comment on a job of another driver, as far as it matters: it is not known whether it was written. That on a try
/// has to be replaced when the job has its start, and that on a suspension when it is over.
pub(crate) fn earlier_comment(comment: &str) -> Option<String> {
    (is_over(comment) || comment.ends_with(RUNS)).then(|| AHEAD.to_owned())
}

/// Returns whether a comment on a job that runs is no longer true, unless another one was written.
pub(crate) fn is_over(comment: &str) -> bool {
    !comment.ends_with(RUNS) && !comment.contains(STARTS_ON)
}

/// Returns the orders that take the words of a driver out of these comments of jobs.
pub(crate) fn orders_to_clear<'a>(
    fields: &[CommentField],
    jobs: impl Iterator<Item = &'a Job>,
    cluster: &Cluster,
    comments: &BTreeMap<String, Comments>,
) -> Vec<Order> {
    let groups = waiting_groups(cluster);
    // The waiting tasks of an array have one comment.
    let mut cleared = BTreeSet::new();
    let mut orders = vec![];
    for job in jobs {
        let Some(Comments { user, admin }) = comments.get(&job.id) else { continue };
        for (field, text) in [(CommentField::Comment, user), (CommentField::AdminComment, admin)] {
            let has_words = fields.contains(&field) && text.as_deref().is_some_and(has_driver_comment);
            if has_words && cleared.insert((field, job.number)) {
                let tasks = groups.get(&job.number).and_then(|group| waiting_tasks(group));
                let text = own_comment(text.as_deref()).unwrap_or_default();
                orders.push(Order::Comment { job: job.id.clone(), tasks, field, text });
            }
        }
    }
    orders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_is_read_as_it_was_written() {
        let of = |words: &str| DriverComment::parse(&with_words(Some("mine"), words)).unwrap();
        let both = of("starts by 2026-11-27T10:00:00, likely 2026-11-27T09:00");
        assert_eq!(both.starts_by.as_deref(), Some("2026-11-27T10:00:00"));
        assert_eq!((both.likely.as_deref(), both.why), (Some("2026-11-27T09:00"), None));
        assert_eq!(of(WAITS), DriverComment::default());
        let unplanned = of("not planned: it is held");
        assert_eq!(unplanned.why.as_deref(), Some("not planned: it is held"));
        assert_eq!(DriverComment::parse("mine"), None);
        assert!(!unplanned.is_opportunistic() && of(&format!("{AHEAD}; more")).is_opportunistic());
    }

    /// A user can write anything into the own comment.
    #[test]
    fn the_comment_of_administrators_counts_first() {
        let [user, admin] = ["starts by 1", "starts by 2"].map(|words| Some(with_words(None, words)));
        let by = |comments: &Comments| DriverComment::read(comments).and_then(|comment| comment.starts_by);
        assert_eq!(by(&Comments { user: user.clone(), admin }).as_deref(), Some("2"));
        assert_eq!(by(&Comments { user, admin: Some("of the site".into()) }).as_deref(), Some("1"));
        assert_eq!(by(&Comments::default()), None);
    }

    #[test]
    fn the_comment_of_a_user_is_kept_apart() {
        for (comment, own) in [
            ("mine | miserly: waits", Some("mine")),
            ("a | miserly: waits | miserly: runs", Some("a")),
            ("miserly: waits", None),
            // Texts of users.
            ("a | b", Some("a | b")),
            ("see miserly: waits", Some("see miserly: waits")),
            ("miserly: my own word", Some("miserly: my own word")),
            ("x | miserly: mine | miserly: starts by 1", Some("x | miserly: mine")),
        ] {
            assert_eq!(own_comment(Some(comment)).as_deref(), own, "{comment}");
            assert_eq!(has_driver_comment(comment), own != Some(comment), "{comment}");
        }
        assert_eq!(own_comment(None), None);
    }

    #[test]
    fn the_rights_of_a_user_are_unknown_while_the_accounting_is_away() {
        let away = Slurm { configuration: Some("/dev/null/slurm.conf".into()) };
        let configuration = Configuration { slurm_user: Some(64_030), ..Configuration::default() };
        let field = |user| CommentField::for_user(&away, &configuration, user);
        assert_eq!([0, 64_030].map(field), [Some(CommentField::AdminComment); 2]);
        assert_eq!(field(1000), None);
    }

    #[test]
    fn each_word_of_the_driver_is_taken_out_again() {
        for words in BEGINS.iter().chain([&AHEAD]) {
            assert!(has_driver_comment(&with_words(Some("mine"), words)), "{words}");
        }
    }

    #[test]
    fn former_promises_are_taken_out_of_the_comments_of_users() {
        let task = |id: &str, number: u64, place: Option<&str>| Job {
            id: id.into(),
            number,
            array: place.map(|place| (number, place.to_owned())),
            ..Job::default()
        };
        let jobs =
            [task("7_1", 7, Some("1")), task("7_2", 7, Some("2")), task("8", 8, None), task("9", 9, None)];
        let cluster = Cluster { jobs: jobs.map(|job| (job.id.clone(), job)).into(), ..Cluster::default() };
        let of = |user: &str, admin: &str| Comments {
            user: Some(user.to_owned()),
            admin: Some(admin.to_owned()).filter(|text| !text.is_empty()),
        };
        let comments = [
            ("7_1".to_owned(), of("miserly: waits", "")),
            ("7_2".to_owned(), of("miserly: waits", "")),
            ("8".to_owned(), of("a \"b\" | miserly: starts by 1", "site | miserly: starts by 2")),
            ("9".to_owned(), of("mine", "of the site")),
        ];
        let clear = |fields: &[CommentField]| {
            let orders = orders_to_clear(fields, cluster.jobs.values(), &cluster, &comments.clone().into());
            orders.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let user = clear(&[CommentField::Comment]);
        assert_eq!(
            user,
            ["scontrol update \"JobId=7_[1-2]\" Comment=", "scontrol update JobId=8 \"Comment=a 'b'\""]
        );
        let both = clear(&[CommentField::Comment, CommentField::AdminComment]);
        assert_eq!(both.len(), 3);
        assert_eq!(both[2], "scontrol update JobId=8 AdminComment=site");
    }
}
