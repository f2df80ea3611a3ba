//! A connection that fails when the client reads a response too slowly.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A connection on which a response fails after a time limit.
pub(super) struct WriteTimeout<T> {
    inner: T,
    timeout: Duration,
    endless: Endless,
    waiting: Option<Pin<Box<Sleep>>>,
}

/// Whether the response of a connection is a stream of events, which has no end.
#[derive(Clone, Debug, Default)]
pub(super) struct Endless(Arc<AtomicBool>);

impl Endless {
    /// Takes note that the response is a stream of events. It is the last one of its connection.
    pub(super) fn begin(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn has_begun(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl<T> WriteTimeout<T> {
    pub(super) fn new(inner: T, timeout: Duration, endless: Endless) -> WriteTimeout<T> {
        WriteTimeout { inner, timeout, endless, waiting: None }
    }

    /// Returns the connection without the time limit.
    pub(super) fn into_inner(self) -> T {
        self.inner
    }

    /// Returns the result of a write. Each written piece of a stream of events begins its time limit again.
    fn limit_piece(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if matches!(written, Poll::Ready(Ok(1..))) && self.endless.has_begun() {
            self.waiting = None;
        }
        self.limit(context, written)
    }

    /// Returns the result of a write, or an error at the end of the time limit. It begins with the first write that
    /// waits, and ends with a flush: progress of a response with an end does not extend it.
    fn limit<R>(&mut self, context: &mut Context<'_>, result: Poll<io::Result<R>>) -> Poll<io::Result<R>> {
        if result.is_pending() {
            let timeout = self.timeout;
            self.waiting.get_or_insert_with(|| Box::pin(sleep(timeout)));
        }
        let over = self.waiting.as_mut().is_some_and(|waiting| waiting.as_mut().poll(context).is_ready());
        if over { Poll::Ready(Err(io::ErrorKind::TimedOut.into())) } else { result }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for WriteTimeout<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.limit_piece(context, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.inner).poll_flush(context);
        if matches!(flushed, Poll::Ready(Ok(()))) {
            // The server flushes when it has written the whole response.
            self.waiting = None;
        }
        self.limit(context, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
