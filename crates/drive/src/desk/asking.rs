//! The requests to Slurm, and the comments for users.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use miserly_core::Time;
use miserly_slurm::{Cluster, Detail, Job, JobState, task_ranges};

use super::case::{Case, Stage};
use super::{Desk, PATIENCE, Step};
use crate::comment::{
    AHEAD, CommentField, FIRST_TASK, NOT_PLANNED, RUNS, STANDS, STARTS_BY, STARTS_ON, WAITS, is_over,
    with_words,
};
use crate::instant::{local, minute};
use crate::notes::Note;
use crate::orders::{Order, PLACED, minutes};

/// The most comments of a step.
const MOST_TOLD: usize = 20;

impl Desk {
    /// Returns whether a job was placed and Slurm was not asked yet. `left` are the nodes to wait for.
    pub(super) fn has_unasked(&self, cluster: &Cluster, left: &BTreeSet<String>) -> bool {
        let is_unasked = |(id, case): (&String, &Case)| {
            let is_placed = match (&case.facts.opportunistic, &case.facts.stage) {
                (Some(job), _) => job.is_unasked(),
                (None, Stage::Placed { asked: 0, .. }) => !case.waits_for(left),
                (None, _) => false,
            };
            is_placed && cluster.jobs.contains_key(id)
        };
        self.cases.iter().any(is_unasked)
    }

    /// Finds the commands that make Slurm follow the ledger. `left` are the nodes to wait for.
    pub(super) fn give_orders(
        &mut self,
        cluster: &Cluster,
        read: &BTreeMap<String, Detail>,
        left: &BTreeSet<String>,
        step: &mut Step,
    ) {
        let name = self.settings.reservation.clone();
        let nodes: Vec<String> = self.site.names().map(str::to_owned).collect();
        let until = minutes(self.settings.fallback);
        let present = cluster.reservations.get(&name);
        match present {
            None => step.orders.push(Order::Reserve {
                reservation: name.clone(),
                nodes: nodes.clone(),
                owner: self.settings.owner,
                minutes: until,
            }),
            Some(reservation) => {
                let has: BTreeSet<&String> = reservation.nodes.iter().collect();
                if has != nodes.iter().collect() {
                    step.orders.push(Order::Span { reservation: name.clone(), nodes: nodes.clone() });
                }
                let left = reservation.end - cluster.configuration.now;
                if left < until * 60 * 3 / 4 {
                    step.orders.push(Order::Renew { reservation: name.clone(), minutes: until });
                }
            }
        }
        let admitted: BTreeSet<u32> = present
            .and_then(|reservation| reservation.users.as_deref())
            .unwrap_or_default()
            .split(',')
            .filter_map(user_number)
            .collect();
        let now = self.now;
        // A job is suspended before another one is placed on its processors.
        step.orders.append(&mut self.orders_for_suspensions(cluster, left));
        let mut needed = BTreeSet::from([self.settings.owner]);
        let mut places = vec![];
        let most = self.site.len() as u64;
        for (id, case) in &mut self.cases {
            let Some(job) = cluster.jobs.get(id) else { continue };
            let inside = job.reservation.as_deref() == Some(&name);
            if let Some(opportunistic) = &case.facts.opportunistic {
                if opportunistic.is_placed() && job.state == JobState::Pending {
                    needed.insert(job.user);
                }
                places.extend(case.orders_ahead(now, job, &name, most, step));
                continue;
            }
            if job.state == JobState::Pending && case.waits_for(left) {
                // It had another place before, where Slurm might start it yet.
                if inside || job.priority == PLACED {
                    places.push(take_back(job, &case.facts.form, most));
                }
                continue;
            }
            match &mut case.facts.stage {
                Stage::Placed { nodes, asked, reason, since } if job.state == JobState::Pending => {
                    needed.insert(job.user);
                    if !inside || *asked == 0 {
                        if *asked == 0 {
                            let waited = now - Time::from_ticks(std::mem::replace(since, now.ticks()));
                            let is_late = case.facts.promised.is_some_and(|(_, latest)| latest < now.ticks());
                            if waited > PATIENCE && is_late && case.facts.broken.is_none() {
                                let why = format!("its nodes were free only after {} s", waited.secs());
                                case.facts.broken = Some(why);
                            }
                            let note = Note::Placed { nodes: nodes.clone(), reason: reason.clone() };
                            step.notes.push((id.clone(), note));
                        }
                        *asked += 1;
                        step.changed = true;
                        places.push(Order::Place {
                            job: id.clone(),
                            reservation: name.clone(),
                            nodes: nodes.clone(),
                        });
                    } else if job.reason.as_deref() == Some("BeginTime") && case.facts.lost > 0 {
                        // A slurmctld that was killed forgets that the driver let a requeued job start at once.
                        places.push(Order::Ready { job: id.clone() });
                    }
                }
                Stage::Waiting if job.state == JobState::Pending && (inside || job.priority == PLACED) => {
                    places.push(take_back(job, &case.facts.form, most));
                }
                _ => {}
            }
        }
        let more: BTreeSet<u32> = needed.difference(&admitted).copied().collect();
        let more = if present.is_some() { more } else { &more - &BTreeSet::from([self.settings.owner]) };
        if !more.is_empty() {
            step.orders.push(Order::Admit { reservation: name.clone(), users: more });
        }
        step.orders.append(&mut places);
        let fewer: BTreeSet<u32> = admitted.difference(&needed).copied().collect();
        if !fewer.is_empty() {
            step.orders.push(Order::Dismiss { reservation: name, users: fewer });
        }
        self.tell(cluster, read, step);
    }

    /// Returns whether it has taken in a job.
    pub(crate) fn knows(&self, id: &str) -> bool {
        self.cases.contains_key(id)
    }

    /// Takes in that the comment of a job was not written.
    pub(crate) fn untell(&mut self, id: &str) {
        if let Some(case) = self.cases.get_mut(id) {
            case.facts.told = None;
        }
    }

    /// Writes into the comments of users from now on: Slurm refuses those of administrators.
    pub(crate) fn write_user_comments(&mut self) {
        self.comments = Some(CommentField::Comment);
        for case in self.cases.values_mut() {
            case.facts.told = None;
        }
    }

    /// Writes the promise of each waiting job, or the reason of its wait, into its comment.
    ///
    /// The waiting tasks of an array share a comment, because a comment of its own would part a task from the others.
    ///
    /// `read` are the descriptions that were read for this step.
    fn tell(&mut self, cluster: &Cluster, read: &BTreeMap<String, Detail>, step: &mut Step) {
        let Some(field) = self.comments else { return };
        let tasks = waiting_groups(cluster);
        let (mut told, mut asked) = (0, 0);
        // Each step goes on after the job at which the last one ended.
        let first = std::mem::take(&mut self.told_last);
        let ids: Vec<String> = self
            .cases
            .range::<String, _>((Bound::Excluded(&first), Bound::Unbounded))
            .chain(self.cases.range::<String, _>(..=&first))
            .map(|(id, _)| id.clone())
            .collect();
        for id in &ids {
            let Some((job, case)) = cluster.jobs.get(id).zip(self.cases.get(id)) else { continue };
            let alone = vec![job];
            let group = match tasks.get(&job.number) {
                // The first task of an array has the comment of all.
                Some(group) if job.state == JobState::Pending && group[0].id != *id => continue,
                Some(group) if job.state == JobState::Pending => group,
                _ if case.runs_ahead() || case.facts.suspension.is_some() => &alone,
                _ if case.facts.told.as_deref().is_some_and(is_over) => &alone,
                _ => continue,
            };
            if told + asked == MOST_TOLD {
                break;
            }
            let cases: Vec<&Case> = group.iter().filter_map(|task| self.cases.get(&task.id)).collect();
            let words =
                if group.len() == 1 { cases.first().map(|case| words(case)) } else { shared_words(&cases) };
            let Some((words, case)) = words.zip(self.cases.get_mut(id)) else { continue };
            let facts = &mut case.facts;
            let comment = with_words(field.of(&facts.form), &words);
            if facts.told.as_ref() != Some(&comment) {
                // Others may have changed the comment. A job that is placed starts within a second.
                let is_placed = matches!(facts.stage, Stage::Placed { .. });
                let is_known = is_placed && facts.told.is_some();
                if !is_known && !read.contains_key(id) {
                    asked += 1;
                    step.unread.extend(group.iter().map(|task| task.id.clone()));
                    continue;
                }
                told += 1;
                // Those that are read for the next step stay in front.
                if !is_placed {
                    self.told_last.clone_from(id);
                }
                step.changed = true;
                let tasks = waiting_tasks(group);
                step.orders.push(Order::Tell { job: id.clone(), tasks, field, text: comment.clone() });
                facts.told = Some(comment);
            }
        }
        if self.told_last.is_empty() {
            self.told_last = first;
        }
    }
}

/// Returns the order that makes a placed job an ordinary waiting job. `most` is the number of nodes.
pub(super) fn take_back(job: &Job, form: &Detail, most: u64) -> Order {
    let count = (form.least_nodes.max(1), form.most_nodes.unwrap_or(most).max(1));
    // A hold of a user or an administrator stays. A request that Slurm cannot meet is held because of the placement.
    let releases = job.priority == PLACED || job.reason.as_deref() == Some("BadConstraints");
    Order::TakeBack { job: job.id.clone(), nodes: form.nodes.clone(), count, releases }
}

/// Returns the comment on a waiting job.
fn words(case: &Case) -> String {
    let facts = &case.facts;
    let likely = case.likely().map(|at| format!(", likely {}", minute(at))).unwrap_or_default();
    if case.runs_ahead() {
        let by = facts.promised.filter(|(_, latest)| *latest < Time::MAX.ticks());
        let by = by.map(|(_, latest)| format!(", and starts by {}", local(Time::from_ticks(latest))));
        return format!("{AHEAD}; if they are needed, it waits again{}", by.unwrap_or_default());
    }
    match (&facts.stage, &facts.aside, facts.promised) {
        (Stage::Running, ..) if facts.suspension.is_some() => STANDS.to_owned(),
        (Stage::Running, ..) => RUNS.to_owned(),
        (Stage::Placed { nodes, .. }, ..) => {
            let briefly = " for a short time; if it has not ended then, it waits again";
            format!("{STARTS_ON}{}{}", nodes.join(","), if facts.quantum.is_some() { briefly } else { "" })
        }
        (_, Some(aside), _) => format!("{NOT_PLANNED}{}", aside.why),
        (_, None, Some((_, latest))) if latest < Time::MAX.ticks() => {
            format!("{STARTS_BY}{}{likely}", local(Time::from_ticks(latest)))
        }
        // Its promise has no end.
        (_, None, Some(_)) => {
            format!("{WAITS}: {}{likely}", facts.broken.as_deref().unwrap_or("no start is known"))
        }
        (_, None, None) => format!("{WAITS}{likely}"),
    }
}

/// Returns the comment on the waiting tasks of an array, if there is anything to say on all of them.
fn shared_words(tasks: &[&Case]) -> Option<String> {
    let promises = tasks.iter().filter(|case| case.facts.aside.is_none()).filter_map(|case| {
        let (_, latest) = case.facts.promised?;
        Some(latest).filter(|latest| *latest < Time::MAX.ticks())
    });
    let (least, most) = (promises.clone().min(), promises.clone().max());
    if let Some((least, most)) = least.zip(most) {
        let [least, most] = [least, most].map(|at| local(Time::from_ticks(at)));
        let without = tasks.len() - promises.count();
        let others = if without > 0 { format!("; {without} have no promise yet") } else { String::new() };
        return Some(format!("{FIRST_TASK}starts by {least}, the last by {most}{others}"));
    }
    let mut likely: Vec<Time> = tasks.iter().filter_map(|case| case.likely()).collect();
    likely.sort_unstable();
    match (likely.first(), tasks.first()) {
        (Some(first), _) => Some(format!("{WAITS}; {FIRST_TASK}starts likely {}", minute(*first))),
        (None, Some(task)) => Some(words(task)),
        (None, None) => None,
    }
}

/// Returns the waiting jobs by number, those of an array in order: its tasks share a number, and a comment.
pub(crate) fn waiting_groups(cluster: &Cluster) -> BTreeMap<u64, Vec<&Job>> {
    let mut groups: BTreeMap<u64, Vec<&Job>> = BTreeMap::new();
    for job in cluster.jobs.values().filter(|job| job.state == JobState::Pending) {
        groups.entry(job.number).or_default().push(job);
    }
    for group in groups.values_mut().filter(|group| group.len() > 1) {
        group.sort_by_cached_key(|task| task.order());
    }
    groups
}

/// Returns several waiting tasks of an array in Slurm's notation: `17_[3-9]`.
pub(crate) fn waiting_tasks(group: &[&Job]) -> Option<String> {
    let [first, _, ..] = group else { return None };
    let (array, _) = first.array.as_ref()?;
    let numbers: Option<Vec<usize>> = group.iter().map(|job| job.array.as_ref()?.1.parse().ok()).collect();
    Some(format!("{array}_[{}]", task_ranges(&numbers?)))
}

/// Returns the number of a user in the list of a reservation: its number, or its name on this machine.
fn user_number(name: &str) -> Option<u32> {
    let name = name.trim();
    name.parse().ok().or_else(|| Some(nix::unistd::User::from_name(name).ok()??.uid.as_raw()))
}

#[cfg(test)]
mod tests {
    use super::super::case::Facts;
    use super::*;

    fn case(promised: Option<i64>, likely: Option<i64>) -> Case {
        let ticks = |seconds: i64| seconds * 1_000_000;
        let facts = Facts {
            promised: promised.map(|latest| (ticks(latest), ticks(latest))),
            likely: likely.map(|at| (ticks(at), ticks(at))),
            ..Facts::default()
        };
        Case { number: 1, handle: None, facts }
    }

    #[test]
    fn tasks_of_an_array_share_a_comment() {
        let [zero, minute_later] = [0, 60].map(|seconds| local(Time::from_secs(seconds).unwrap()));
        let [one, other, none] = [case(Some(60), Some(30)), case(Some(0), None), case(None, Some(0))];
        assert_eq!(
            shared_words(&[&one, &other]),
            Some(format!("the first of these tasks starts by {zero}, the last by {minute_later}"))
        );
        assert!(shared_words(&[&one, &none]).unwrap().ends_with("; 1 have no promise yet"));
        let likely = minute(Time::ZERO);
        assert_eq!(
            shared_words(&[&none, &none]),
            Some(format!("waits; the first of these tasks starts likely {likely}"))
        );
        assert_eq!(words(&none), format!("waits, likely {likely}"));
        assert_eq!(words(&other), format!("starts by {zero}"));
        let task = |place: &str| Job { array: Some((7, place.to_owned())), ..Job::default() };
        let tasks = ["3", "4", "9"].map(task);
        assert_eq!(waiting_tasks(&tasks.iter().collect::<Vec<_>>()).unwrap(), "7_[3-4,9]");
    }
}
