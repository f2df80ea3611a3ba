//! How the file of a log is read, as an experiment file writes it.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use miserly_import::{ColumnMap, ImportOptions, SubmitAt, find_preset, find_time_zone};
use miserly_machine_file::value_of;
use serde::{Deserialize, Serialize};

use super::folders::{find, looked_in};

/// How the file of a log is read. The options are those of the command line.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ReadFile {
    /// What the columns of a job table mean, by the name of a public data set.
    pub preset: Option<String>,
    /// What the columns of a job table mean, as a file. It is looked for like a log.
    pub columns: Option<String>,
    /// The time zone of the cluster, for times without one.
    pub time_zone: Option<String>,
    /// The processors of a node, where the size of a job is in nodes only.
    pub cpus_per_node: Option<u32>,
    /// The separator of the columns of `sacct`.
    pub delimiter: Option<String>,
    /// submit or eligible.
    pub submit_at: Option<String>,
    /// Whether the missing fields of a line in the Standard Workload Format are unknown.
    #[serde(default)]
    pub missing_fields: bool,
}

/// The options of reading a log, and the text that determines them.
pub(super) struct ReadOptions {
    pub(super) import: ImportOptions,
    /// Part of the key of a run; empty if nothing is set.
    pub(super) key: String,
}

impl ReadFile {
    /// Checks all but the file of columns.
    ///
    /// # Errors
    /// The first option that is not understood.
    pub(super) fn check(&self) -> Result<(), String> {
        self.without_columns().map(drop)
    }

    /// Returns the options, with the file of columns from `folders`.
    ///
    /// # Errors
    /// The first option that is not understood, or a file of columns that is missing or wrong.
    pub(super) fn options(&self, folders: &[PathBuf]) -> Result<ReadOptions, String> {
        let mut import = self.without_columns()?;
        let mut key = String::new();
        if *self != ReadFile::default() {
            // Plain data: it has a JSON form.
            key = serde_json::to_string(self).unwrap_or_default();
        }
        if let Some(name) = &self.columns {
            let path = find(name, folders)
                .ok_or_else(|| format!("the columns {name} are missing; {}", looked_in(folders)))?;
            let text = fs::read_to_string(&path).map_err(|error| format!("cannot read {name}: {error}"))?;
            import.columns =
                Some(Arc::new(ColumnMap::parse(name, &text).map_err(|error| error.to_string())?));
            key.push_str(&text);
        }
        Ok(ReadOptions { import, key })
    }

    fn without_columns(&self) -> Result<ImportOptions, String> {
        if self.preset.is_some() && self.columns.is_some() {
            return Err("give preset or columns, not both".into());
        }
        if self.cpus_per_node == Some(0) {
            return Err("cpus-per-node must be 1 or more".into());
        }
        let map = self.preset.as_deref().map(|name| find_preset(name)?.map()).transpose()?;
        let zone = self.time_zone.as_deref();
        let submit_at = self.submit_at.as_deref().map(|word| value_of(&SubmitAt::ALL, "submit-at", word));
        Ok(ImportOptions {
            columns: map.map(Arc::new),
            time_zone: zone
                .map(|name| find_time_zone(name).map_err(|error| format!("{name:?}: {error}")))
                .transpose()?,
            cpus_per_node: self.cpus_per_node,
            delimiter: self.delimiter.clone(),
            submit_at: submit_at.transpose()?.unwrap_or_default(),
            keep_ids: true,
            ..ImportOptions::default()
        })
    }
}
