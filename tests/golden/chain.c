/*
 * chain: C99 with loops over 3 bodies, made by hinge.
 *
 * Forces that hold up three links of 1 m and 1 kg, one hanging from another.
 *
 *   q    argument, 3 numbers
 *   tau  result, 3 numbers
 *
 * How to call it:
 *
 *     double q[3], tau[3];
 *     chain(q, tau);
 *
 * Nothing is allocated or kept.  A result must not overlap another array.
 * Operations: 30 multiplications, 21 additions, 0 divisions, sin and cos of 3 angles, 0 others.
 * Workspace on the stack: 288 bytes, 4 rows of 9 numbers.
 */

#include <math.h>

void chain(const double *q, double *tau);

/* kind of a body, rows of it and its parent, where its numbers and arguments begin */
struct chain_visit {
    unsigned short kind, own, parent, numbers, q;
};

static const struct chain_visit chain_visits[3] = {
    {0, 1, 0, 0, 0},
    {1, 2, 1, 0, 1},
    {2, 3, 2, 1, 2},
};

/* in which bodies of one kind differ */
static const double chain_numbers[2] = {
    1.5,
    0.5,
};

/* what the loops keep of a body */
struct chain_row {
    double x1[3], x2[3], x3[1], x4[2];
};

static const struct chain_row chain_ground = {
    .x1 = {-0.0, -0.0, 8.0},
};

/* where results are: row and entry */
static const unsigned short chain_results[3][2] = {
    {1, 0}, {2, 0}, {3, 0},
};

/* kept apart: joined again, the parts would take long to compile */
#if defined(__GNUC__)
#define PART static __attribute__((noinline)) void
#else
#define PART static void
#endif

PART chain_step1_kind0(const double *q, const struct chain_row *parent, struct chain_row *own)
{
    const double c1 = cos(q[0]);
    own->x4[0] = c1;
    const double s1 = sin(q[0]);
    own->x4[1] = s1;
    own->x1[0] = -(s1 * parent->x1[0] + c1 * parent->x1[2]);
    const double t1 = s1 * parent->x1[2] - c1 * parent->x1[0];
    own->x1[1] = t1;
    own->x2[1] = -2.5 * parent->x1[1];
    own->x2[2] = 2.5 * t1;
    own->x1[2] = parent->x1[1];
    own->x2[0] = 0.0;
}

PART chain_step1_kind1(const double *q, const double *numbers, const struct chain_row *parent,
    struct chain_row *own)
{
    const double c1 = cos(q[0]);
    own->x4[0] = c1;
    const double s1 = sin(q[0]);
    own->x4[1] = s1;
    own->x1[0] = c1 * parent->x1[0] + s1 * parent->x1[1];
    const double t1 = c1 * parent->x1[1] - s1 * parent->x1[0];
    own->x1[1] = t1;
    own->x2[1] = -(numbers[0] * parent->x1[2]);
    own->x2[2] = numbers[0] * t1;
    own->x1[2] = parent->x1[2];
    own->x2[0] = 0.0;
}

PART chain_step2_kind0(struct chain_row *parent, struct chain_row *own)
{
    const double t1 = parent->x2[0] - (own->x4[1] * own->x2[0] + own->x4[0] * own->x2[1]);
    const double t2 = own->x2[2] + parent->x2[1];
    const double t3 = parent->x2[2] + (own->x4[1] * own->x2[1] - own->x4[0] * own->x2[0]);
    own->x3[0] = own->x2[2];
    parent->x2[0] = t1;
    parent->x2[1] = t2;
    parent->x2[2] = t3;
}

PART chain_step2_kind1(struct chain_row *parent, struct chain_row *own)
{
    const double t1 = parent->x2[0] + (own->x4[0] * own->x2[0] - own->x4[1] * own->x2[1]);
    const double t2 = parent->x2[1] + (own->x4[1] * own->x2[0] + own->x4[0] * own->x2[1]);
    const double t3 = own->x2[2] + parent->x2[2];
    own->x3[0] = own->x2[2];
    parent->x2[0] = t1;
    parent->x2[1] = t2;
    parent->x2[2] = t3;
}

void chain(const double *q, double *tau)
{
    struct chain_row w[4];
    w[0] = chain_ground;
    for (int i = 0; i < 3; i++) {
        const struct chain_visit *visit = &chain_visits[i];
        switch (visit->kind) {
        case 0:
            chain_step1_kind0(q + visit->q, &w[visit->parent], &w[visit->own]);
            break;
        case 1:
        case 2:
            chain_step1_kind1(q + visit->q, chain_numbers + visit->numbers, &w[visit->parent],
                &w[visit->own]);
            break;
        }
    }
    for (int i = 2; i >= 0; i--) {
        const struct chain_visit *visit = &chain_visits[i];
        switch (visit->kind) {
        case 0:
            chain_step2_kind0(&w[visit->parent], &w[visit->own]);
            break;
        case 1:
        case 2:
            chain_step2_kind1(&w[visit->parent], &w[visit->own]);
            break;
        }
    }
    for (int i = 0; i < 3; i++) {
        tau[i] = w[chain_results[i][0]].x3[chain_results[i][1]];
    }
}
