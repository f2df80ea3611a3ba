//! The requests to Slurm, and the comments for users.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use miserly_core::Time;
use miserly_slurm::{Cluster, JobState};

use super::case::{Case, Stage};
use super::{Desk, Step};
use crate::notes::Note;
use crate::orders::{Order, PLACED, minutes};
use crate::{local, user_number};

/// The most comments of a step.
const MOST_TOLD: usize = 20;

/// The mark of the part of a comment that is this program's.
const MARK: &str = "miserly: ";

impl Desk {
    /// Returns whether a job was placed and Slurm was not asked yet.
    pub(super) fn has_unasked(&self, cluster: &Cluster) -> bool {
        let is_unasked = |(id, case): (&String, &Case)| {
            matches!(case.facts.stage, Stage::Placed { asked: 0, .. }) && cluster.jobs.contains_key(id)
        };
        self.cases.iter().any(is_unasked)
    }

    /// Finds the commands that make Slurm follow the ledger.
    pub(super) fn give_orders(&mut self, cluster: &Cluster, step: &mut Step) {
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
        let mut needed = BTreeSet::from([self.settings.owner]);
        let mut places = vec![];
        let most = self.site.len() as u64;
        for (id, case) in &mut self.cases {
            let Some(job) = cluster.jobs.get(id) else { continue };
            let inside = job.reservation.as_deref() == Some(&name);
            match &mut case.facts.stage {
                Stage::Placed { nodes, asked, reason, .. } if job.state == JobState::Pending => {
                    needed.insert(job.user);
                    if !inside || *asked == 0 {
                        if *asked == 0 {
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
                    }
                }
                Stage::Waiting if job.state == JobState::Pending && (inside || job.priority == PLACED) => {
                    let form = &case.facts.form;
                    let count = (form.least_nodes.max(1), form.most_nodes.unwrap_or(most).max(1));
                    // A hold of a user or an administrator stays. A request that Slurm cannot meet is held because of the placement.
                    let releases = job.priority == PLACED || job.reason.as_deref() == Some("BadConstraints");
                    let nodes = form.nodes.clone();
                    places.push(Order::TakeBack { job: id.clone(), nodes, count, releases });
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
        self.tell(cluster, step);
    }

    /// Takes in that the comment of a job was not written.
    pub(crate) fn untell(&mut self, id: &str) {
        if let Some(case) = self.cases.get_mut(id) {
            case.facts.told = None;
        }
    }

    /// Writes the promise of each waiting job, or the reason of its wait, into its comment.
    fn tell(&mut self, cluster: &Cluster, step: &mut Step) {
        if !self.settings.comments {
            return;
        }
        let mut shared: BTreeMap<u64, u32> = BTreeMap::new();
        for job in cluster.jobs.values().filter(|job| job.state == JobState::Pending) {
            *shared.entry(job.number).or_default() += 1;
        }
        let mut told = 0;
        // Each step goes on after the job at which the last one ended.
        let first = std::mem::take(&mut self.told_last);
        let ids: Vec<String> = self
            .cases
            .range::<String, _>((Bound::Excluded(&first), Bound::Unbounded))
            .chain(self.cases.range::<String, _>(..=&first))
            .map(|(id, _)| id.clone())
            .collect();
        for id in &ids {
            let Some(case) = self.cases.get_mut(id) else { continue };
            let Some(job) = cluster.jobs.get(id) else { continue };
            // A comment on one of the waiting tasks of an array would part it from the others.
            if job.state != JobState::Pending || shared.get(&job.number) != Some(&1) || told == MOST_TOLD {
                continue;
            }
            let facts = &mut case.facts;
            let words = match (&facts.stage, &facts.aside, facts.promised) {
                (Stage::Placed { nodes, .. }, ..) => format!("starts on {}", nodes.join(",")),
                (_, Some(aside), _) => format!("not planned: {}", aside.why),
                (_, None, Some((_, latest))) if latest < Time::MAX.ticks() => {
                    format!("starts by {}", local(Time::from_ticks(latest)))
                }
                // Its promise has no end.
                (_, None, Some(_)) => {
                    format!("waits: {}", facts.broken.as_deref().unwrap_or("no start is known"))
                }
                (_, None, None) => "waits".to_owned(),
            };
            let comment = match facts.form.comment.as_deref() {
                Some(own) => format!("{own} | {MARK}{words}"),
                None => format!("{MARK}{words}"),
            };
            if facts.told.as_ref() != Some(&comment) {
                told += 1;
                self.told_last.clone_from(id);
                step.changed = true;
                step.orders.push(Order::Tell { job: id.clone(), text: comment.clone() });
                facts.told = Some(comment);
            }
        }
    }
}

/// Returns the comment of a user, without the part of this program.
pub(super) fn own_comment(comment: Option<&str>) -> Option<String> {
    let comment = comment?;
    let own =
        comment.find(MARK).map_or(comment, |at| comment[..at].trim_end().trim_end_matches('|').trim_end());
    Some(own.to_owned()).filter(|own| !own.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_comment_of_a_user_is_kept_apart() {
        assert_eq!(own_comment(Some("mine | miserly: waits")).as_deref(), Some("mine"));
        assert_eq!(own_comment(Some("a | b")).as_deref(), Some("a | b"));
        assert_eq!(own_comment(Some("miserly: waits")), None);
        assert_eq!(own_comment(None), None);
    }
}
