//! What a job asks of the kind of its nodes, beside their sizes.

use std::collections::BTreeMap;

use crate::{Detail, Job, Node, gpu_types};

/// What a job asks of the kind of its nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeNeeds {
    /// The features, as Slurm writes them. Those in a form that is not known are left out of account.
    pub features: Option<String>,
    /// The least GPUs of each type.
    pub gpu_types: BTreeMap<String, u64>,
    /// The only nodes on which it may run; all nodes, if there are none.
    pub nodes: Vec<String>,
    /// The nodes on which it may not run.
    pub not_nodes: Vec<String>,
}

impl NodeNeeds {
    /// Returns whether a node is of the kind.
    pub fn admit(&self, name: &str, node: &Node) -> bool {
        let has = |feature: &str| node.features.iter().any(|other| other.eq_ignore_ascii_case(feature));
        let features = self.features.as_deref().and_then(Features::parse);
        let listed = |list: &[String]| list.iter().any(|other| other == name);
        features.is_none_or(|features| match features {
            Features::All(all) => all.into_iter().all(has),
            Features::Any(any) => any.into_iter().any(has),
        }) && (self.gpu_types.is_empty() || node.has_gpus(&self.gpu_types))
            && (self.nodes.is_empty() || listed(&self.nodes))
            && !listed(&self.not_nodes)
    }

    /// Returns whether it has features in a form that is not known.
    pub(crate) fn has_unknown_features(&self) -> bool {
        self.features.as_deref().is_some_and(|list| Features::parse(list).is_none())
    }
}

/// A list of features without counts, brackets and negations.
enum Features<'a> {
    /// Each node has all of them.
    All(Vec<&'a str>),
    /// Each node has one of them.
    Any(Vec<&'a str>),
}

impl<'a> Features<'a> {
    fn parse(list: &'a str) -> Option<Features<'a>> {
        if list.contains(['[', '(', '*', '!']) {
            return None;
        }
        let split = |mark: &[char]| list.split(mark).map(str::trim).collect::<Vec<&str>>();
        match (list.contains('|'), list.contains(['&', ','])) {
            (true, true) => None,
            (true, false) => Some(Features::Any(split(&['|']))),
            (false, _) => Some(Features::All(split(&['&', ',']))),
        }
    }
}

impl Node {
    /// Returns whether it has as many GPUs of each of these types, used or not.
    pub fn has_gpus(&self, types: &BTreeMap<String, u64>) -> bool {
        let has = self.gres.as_deref().map(gpu_types).unwrap_or_default();
        types.iter().all(|(name, count)| has.get(name).is_some_and(|own| own >= count))
    }
}

impl Detail {
    /// Returns what a job of this description asks of the kind of its nodes.
    pub fn needs(&self, job: &Job) -> NodeNeeds {
        let otherwise = self.gres_otherwise.as_deref().map(gpu_types).unwrap_or_default();
        // Those of the whole job may be on several nodes.
        let mut types: BTreeMap<String, u64> = otherwise.into_keys().map(|name| (name, 1)).collect();
        let by_node = self.gres_per_node.as_deref().or(job.gres.as_deref());
        types.extend(by_node.map(gpu_types).unwrap_or_default());
        NodeNeeds {
            features: self.features.clone(),
            gpu_types: types,
            nodes: self.nodes.clone(),
            not_nodes: self.not_nodes.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_of_the_kind_or_not() {
        let words = |list: &str| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let node = Node {
            features: words("fast ib"),
            gres: Some("gpu:a100:2(S:0-1),gpu:t4:1,nvme:9".to_owned()),
            ..Node::default()
        };
        let features = |list: &str| NodeNeeds { features: Some(list.to_owned()), ..NodeNeeds::default() };
        for (list, admitted, known) in [
            ("fast", true, true),
            ("FAST&ib", true, true),
            ("fast,ib", true, true),
            ("fast&big", false, true),
            ("big|ib", true, true),
            ("big|slow", false, true),
            ("fast&ib|big", true, false),
            ("[fast|big]", true, false),
            ("big*2", true, false),
            ("!big", true, false),
        ] {
            let needs = features(list);
            assert_eq!(
                (needs.admit("n1", &node), !needs.has_unknown_features()),
                (admitted, known),
                "{list}"
            );
        }
        for (list, admitted) in
            [("gpu:2", true), ("gpu:a100:2", true), ("gpu:a100:3", false), ("gpu:h100", false)]
        {
            let needs = NodeNeeds { gpu_types: gpu_types(list), ..NodeNeeds::default() };
            assert_eq!(needs.admit("n1", &node), admitted, "{list}");
        }
        let named = |nodes: &str, not_nodes: &str| {
            NodeNeeds { nodes: words(nodes), not_nodes: words(not_nodes), ..NodeNeeds::default() }
                .admit("n1", &node)
        };
        assert_eq!(
            [named("n2 n1", ""), named("n2", ""), named("", "n2"), named("", "n1")],
            [true, false, true, false]
        );
    }

    #[test]
    fn types_of_gpus_are_by_node_or_of_the_whole_job() {
        let job = |gres: Option<&str>| Job { gres: gres.map(str::to_owned), ..Job::default() };
        let of_job = Detail { gres_otherwise: Some("gres/gpu:a100:8".to_owned()), ..Detail::default() };
        let types = |detail: &Detail, gres| detail.needs(&job(gres)).gpu_types;
        assert_eq!(types(&of_job, None), [("a100".to_owned(), 1)].into());
        assert_eq!(types(&Detail::default(), Some("gres/gpu:a100:2")), [("a100".to_owned(), 2)].into());
        assert_eq!(types(&Detail::default(), Some("gres/gpu:2")), BTreeMap::new());
    }
}
