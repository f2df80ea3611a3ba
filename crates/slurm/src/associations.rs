//! The associations of a cluster: the users of its accounts, their shares and their usage.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp};
use miserly_core::Span;

use crate::decay::Decay;
use crate::{AccountedJob, Slurm, SlurmError};

/// A user of an account, in one partition or in all.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Association {
    /// The account.
    pub account: String,
    /// The user.
    pub user: String,
    /// The partition, if the association is of one.
    pub partition: Option<String>,
}

/// Returns the time over which usage is added up: seven half-lives, after which less than a 128th of it is left.
pub fn decay_time(half_life: Span) -> SignedDuration {
    SignedDuration::from_secs(half_life.secs().saturating_mul(7))
}

/// The associations of a cluster, with numbers from 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Associations {
    numbers: BTreeMap<Association, u32>,
    /// The usage of each one, decayed.
    usage: BTreeMap<u32, u64>,
    shares: String,
}

impl Associations {
    /// Reads the associations of a cluster.
    ///
    /// # Errors
    /// If `sshare` gives no answer, or one that cannot be read.
    pub fn read(slurm: &Slurm) -> Result<Associations, SlurmError> {
        let columns = "Account,User,Partition,RawShares,RawUsage";
        let answer = slurm.ask("sshare", &["-a", "-P", "-n", "-m", "-o", columns])?;
        Associations::parse(&answer.text).ok_or_else(|| SlurmError::Unreadable {
            program: "sshare".to_owned(),
            problem: "no tree of accounts".to_owned(),
            line: answer.text.lines().next().unwrap_or_default().chars().take(200).collect(),
        })
    }

    /// Reads lines of which the blanks ahead are the depths of the accounts. The first one is the root.
    pub(crate) fn parse(lines: &str) -> Option<Associations> {
        let mut all = Associations::default();
        let mut open = 0;
        let mut lines = lines.lines();
        lines.next().filter(|root| root.starts_with("root|"))?;
        for line in lines {
            let depth = line.len() - line.trim_start().len();
            let [account, user, partition, shares, usage] =
                line.trim_start().split('|').collect::<Vec<_>>().try_into().ok()?;
            // The root has the depth 0, so that its accounts have the depth 1.
            let within = depth.checked_sub(1)?;
            (within <= open).then_some(())?;
            all.shares.push_str(&")".repeat(open - within));
            if !all.shares.is_empty() && !all.shares.ends_with('(') {
                all.shares.push_str(", ");
            }
            open = within;
            let shares =
                if shares == "parent" { shares } else { shares.parse::<u32>().ok().map(|_| shares)? };
            if user.is_empty() {
                write!(all.shares, "{shares}*(").ok()?;
                open += 1;
                continue;
            }
            let number = u32::try_from(all.numbers.len() + 1).ok()?;
            let association = Association {
                account: account.to_owned(),
                user: user.to_owned(),
                partition: Some(partition).filter(|name| !name.is_empty()).map(str::to_owned),
            };
            write!(all.shares, "{shares}*g{number}").ok()?;
            all.numbers.insert(association, number);
            all.usage.insert(number, usage.parse().ok()?);
        }
        all.shares.push_str(&")".repeat(open));
        (!all.numbers.is_empty()).then_some(all)
    }

    /// Returns the number of the association of a job in one of these partitions.
    pub fn number(&self, account: &str, user: &str, partition: Option<&str>) -> Option<u32> {
        let number = |partition: Option<&str>| {
            let (account, user) = (account.to_owned(), user.to_owned());
            self.numbers.get(&Association { account, user, partition: partition.map(str::to_owned) }).copied()
        };
        partition.and_then(|partition| number(Some(partition))).or_else(|| number(None))
    }

    /// Returns the associations with their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Association)> {
        self.numbers.iter().map(|(association, number)| (*number, association))
    }

    /// Returns the tree of the shares, with the numbers of the associations as groups.
    pub fn shares(&self) -> &str {
        &self.shares
    }

    /// Returns the usage of each association at an instant, decayed: what its jobs cost, or else their processor-seconds.
    ///
    /// With a half-life it is the sum over the jobs, which must have run before the instant, at least for [`decay_time`]: so it is the
    /// same whenever it is asked. Jobs of deleted associations are not in it, and neither is what an administrator has forgotten.
    /// Without a half-life it is the usage of `now` without that of the jobs, which must have run since the instant. `counted` is the
    /// last instant before the end of a job until which Slurm counts its usage.
    pub fn usage_at(
        &self,
        [at, now]: [Timestamp; 2],
        half_life: Option<Span>,
        jobs: &[AccountedJob],
        counted: impl Fn(Timestamp) -> Timestamp,
    ) -> BTreeMap<u32, f64> {
        let numbered = jobs.iter().filter_map(|job| Some((self.number_of(job)?, job.start?, job)));
        let seconds = |from: Timestamp, to: Timestamp| to.duration_since(from).as_secs_f64();
        let Some(half_life) = half_life else {
            let mut usage: BTreeMap<u32, f64> =
                self.usage.iter().map(|(number, seconds)| (*number, *seconds as f64)).collect();
            for (number, start, job) in numbered {
                // Slurm has counted running jobs at its last computation.
                let run = seconds(start.max(at), counted(job.end.unwrap_or(now)));
                if let Some(left) = usage.get_mut(&number).filter(|_| run > 0.0) {
                    *left = (*left - job.charge() * run).max(0.0);
                }
            }
            return usage;
        };
        let decay = Decay::new(half_life);
        let mut usage: BTreeMap<u32, f64> = self.usage.keys().map(|number| (*number, 0.0)).collect();
        for (number, start, job) in numbered {
            let end = job.end.filter(|end| *end < at).map_or(at, &counted);
            if start < end {
                let run = decay.of_run(seconds(start, at), seconds(end, at));
                *usage.entry(number).or_default() += job.charge() * run;
            }
        }
        usage
    }

    /// Returns the number of the association of a job of the accounting.
    pub fn number_of(&self, job: &AccountedJob) -> Option<u32> {
        self.number(&job.account, &job.user, Some(&job.partition))
    }
}

#[cfg(test)]
mod tests {
    use miserly_core::{Time, Usage};
    use miserly_policies::shared::ShareTree;

    use super::*;

    /// As a cluster of the tests printed it, with other numbers.
    const TREE: &str = "\
root||||0
 root|root||1|7
 chem|||10|0
  chem|bin|long|parent|0
  chem|root||3|60
 physics|||30|0
  lab1|||2|0
   lab1|games||1|0
   lab1|root||3|9
  lab2|||parent|0
   lab2|games||1|0
 spare|||5|0
";

    /// What a Slurm 22.05 printed after 120 jobs.
    const RANKED: &str = "\
root||||5521|
 root|root||1|0|1.000000
 chem|||10|1433|
  chem|bin||2|352|0.181818
  chem|games||parent|536|0.272727
  chem|root||1|544|0.090909
 physics|||30|3432|
  empty|||1|0|
  lab1|||2|1789|
   lab1|daemon||1|499|0.727273
   lab1|games||1|303|0.909091
   lab1|root||3|986|0.818182
  lab2|||1|1642|
   lab2|bin||1|407|0.545455
   lab2|man||1|880|0.454545
   lab2|root||1|354|0.636364
 top|||parent|656|
  top|daemon||5|656|0.363636
";

    #[test]
    fn the_ranks_are_those_of_slurm() {
        let lines: Vec<&str> = RANKED.lines().map(|line| line.rsplit_once('|').unwrap().0).collect();
        let all = Associations::parse(&lines.join("\n")).unwrap();
        let usage = all.usage.iter().map(|(group, seconds)| (None, Some(*group), *seconds as f64 * 1e6));
        let usage = Usage::until(Time::ZERO, Span::MAX, usage);
        let ranks = all.shares().parse::<ShareTree>().unwrap().ranks(&usage, Time::ZERO);
        let ours = |group| f64::from(ranks.rank(None, Some(group))) / f64::from(ranks.count());
        let users = RANKED.lines().filter(|line| !line.ends_with('|'));
        let theirs: Vec<&str> = users.map(|line| line.rsplit('|').next().unwrap()).collect();
        assert_eq!(theirs, (1..=11).map(|group| format!("{:.6}", ours(group))).collect::<Vec<_>>());
    }

    #[test]
    fn the_tree_of_the_accounts() {
        let all = Associations::parse(TREE).unwrap();
        let shares = "1*g1, 10*(parent*g2, 3*g3), 30*(2*(1*g4, 3*g5), parent*(1*g6)), 5*()";
        assert_eq!(all.shares(), shares);
        all.shares().parse::<ShareTree>().expect("a tree of shares");
        let number = |account, user, partition| all.number(account, user, Some(partition));
        assert_eq!(number("lab1", "root", "batch"), Some(5));
        assert_eq!(
            [number("chem", "bin", "long"), number("chem", "bin", "batch"), number("lab2", "ann", "batch")],
            [Some(2), None, None]
        );
        for text in ["", "root||||0\n", "chem|||1|0\n", "root||||0\n   a|b||1|0\n", "root||||0\n a|b||x|0\n"]
        {
            assert_eq!(Associations::parse(text), None, "{text:?}");
        }
    }

    fn job(account: &str, start: i64, end: Option<i64>) -> AccountedJob {
        let (account, user) = (account.to_owned(), "root".to_owned());
        let (start, end) = (Some(at(start)), end.map(at));
        AccountedJob { account, user, start, end, cpus: 2, ..AccountedJob::default() }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn usage_of_the_past_is_that_of_now_without_the_jobs() {
        let all = Associations::parse(TREE).unwrap();
        // Of 60 processor-seconds, a run has 40 and one that still runs has 10.
        let jobs =
            [job("chem", 1_010, Some(1_030)), job("chem", 1_095, None), job("lab1", 1_000, Some(1_090))];
        let usage = all.usage_at([1_000, 1_100].map(at), None, &jobs, |at| at);
        assert_eq!([1, 3, 5].map(|number| format!("{:.0}", usage[&number])), ["7", "10", "0"]);
        // Counted at each full minute, the first run has 10 and the second one nothing yet.
        let counted = all
            .usage_at([1_000, 1_100].map(at), None, &jobs, |end| at(end.as_second() - end.as_second() % 60));
        assert_eq!(format!("{:.0}", counted[&3]), "40");
    }

    #[test]
    fn decayed_usage_is_the_sum_of_the_runs_before() {
        let all = Associations::parse(TREE).unwrap();
        let half_life = Span::from_secs(50);
        let usage = |now: i64, jobs: &[AccountedJob]| {
            let usage = all.usage_at([1_000, now].map(at), half_life, jobs, |end| at(end.as_second() - 10));
            [1, 3, 5].map(|number| format!("{:.1}", usage[&number]))
        };
        let ended = job("chem", 900, Some(960));
        let runs = job("lab1", 980, None);
        let jobs = [ended.clone(), runs, job("chem", 1_010, Some(1_030))];
        // Two processors for 50 s that ended 50 s ago, and two for the last 20 s.
        let decayed = |from: f64, to: f64| {
            format!(
                "{:.1}",
                2.0 * 50.0 / std::f64::consts::LN_2 * ((-to / 50.0).exp2() - (-from / 50.0).exp2())
            )
        };
        let expected = ["0.0".to_owned(), decayed(100.0, 50.0), decayed(20.0, 0.0)];
        assert_eq!(usage(1_100, &jobs), expected);
        assert_eq!(usage(9_999_999, &jobs), expected, "whenever it is asked");
        // What is left of a run that ended seven half-lives before is less than a 128th.
        let old = [job("chem", 0, Some(1_000 - decay_time(half_life.expect("a span")).as_secs()))];
        let left: f64 = usage(1_100, &old)[1].parse().expect("a number");
        assert!(left > 0.0 && left < 2.0 * 50.0 / std::f64::consts::LN_2 / 128.0 + 0.1, "{left}");
    }
}
