/* Works on as many threads as the job has processors now.
 *
 *   cc -O2 -fopenmp openmp.c -o openmp
 *   miserly submit --cpus 8 --resizable --resize-signal USR1 --time 1h -- ./openmp 1000
 */
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static volatile sig_atomic_t resized = 1;

static void on_resize(int signal) {
    (void)signal;
    resized = 1;
}

/* Returns the number of processors: the file has their numbers, with commas between them. */
static int processors(void) {
    const char *path = getenv("MISERLY_CPUS_FILE");
    FILE *file = path ? fopen(path, "r") : NULL;
    int count = 1, byte;
    if (!file)
        return omp_get_num_procs();
    while ((byte = fgetc(file)) != EOF)
        count += byte == ',';
    fclose(file);
    return count;
}

int main(int arguments, char **argument) {
    long steps = arguments > 1 ? atol(argument[1]) : 100;
    double sum = 0;
    signal(SIGUSR1, on_resize);
    for (long step = 0; step < steps; step++) {
        if (resized) {
            /* Before the file is read, so that a later change is not missed. */
            resized = 0;
            omp_set_num_threads(processors());
            printf("step %ld: %d threads\n", step, omp_get_max_threads());
            fflush(stdout);
        }
#pragma omp parallel for reduction(+ : sum)
        for (long i = 1; i <= 1000000; i++)
            sum += 1.0 / ((double)i * (double)i);
    }
    printf("sum: %f\n", sum / (double)steps);
    return 0;
}
