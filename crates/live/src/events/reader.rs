//! The daemon's end of one stream.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::body::Bytes;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::spawn_blocking;

use super::hub::Stream;
use crate::server::EventSource;

/// The events of one stream, in order.
#[derive(Debug)]
pub(crate) struct EventReader {
    stream: Arc<Stream>,
    /// The events before those of the receiver.
    first: VecDeque<Bytes>,
    receiver: Receiver<Bytes>,
}

impl EventReader {
    /// Returns the events after a number, or a snapshot and all events after it.
    pub(super) fn begin(stream: Stream, after: Option<i64>) -> EventReader {
        let (first, receiver) = stream.begin(after);
        EventReader { stream: Arc::new(stream), first: first.into(), receiver }
    }

    /// Begins again with a snapshot.
    async fn begin_again(&mut self) -> Option<Bytes> {
        let stream = Arc::clone(&self.stream);
        let (first, receiver) = spawn_blocking(move || stream.begin(None)).await.ok()?;
        (self.first, self.receiver) = (first.into(), receiver);
        self.first.pop_front()
    }
}

impl EventSource for EventReader {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(event) = self.first.pop_front() {
            return Some(event);
        }
        match self.receiver.recv().await {
            Ok(event) => Some(event),
            // The client was too slow.
            Err(RecvError::Lagged(_)) => self.begin_again().await,
            Err(RecvError::Closed) => None,
        }
    }
}
