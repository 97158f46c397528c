/*
 * double_pendulum: straight-line C99, made by hinge.
 *
 * Accelerations of two links of 1 m and 1 kg that hang from one another, hinges about y.
 *
 *   q    argument, 2 numbers
 *   qd   argument, 2 numbers
 *   tau  argument, 2 numbers
 *   qdd  result, 2 numbers
 *
 * How to call it:
 *
 *     double q[2], qd[2], tau[2], qdd[2];
 *     double_pendulum(q, qd, tau, qdd);
 *
 * Nothing is allocated or kept.  A result must not overlap another array.
 * Operations: 18 multiplications, 17 additions, 1 divisions, sin and cos of 2 angles, 0 others.
 */

#include <math.h>

void double_pendulum(const double *q, const double *qd, const double *tau, double *qdd);

void double_pendulum(const double *q, const double *qd, const double *tau, double *qdd)
{
    const double c1 = cos(q[0]);
    const double s1 = sin(q[0]);
    const double c2 = cos(q[1]);
    const double s2 = sin(q[1]);
    const double t1 = -10.0 * s1;
    const double t2 = qd[0] + qd[1];
    const double t3 = 10.0 * c1 + qd[0] * qd[0];
    const double t4 = c2 * t1 - s2 * t3;
    const double t5 = -0.5 * t4;
    const double t6 = tau[1] - t5;
    const double t7 = c2 * (t4 + (t5 - tau[1])) + s2 * (s2 * t1 + c2 * t3 + 0.5 * (t2 * t2));
    const double t8 = 1.0 / (0.5 + (0.5 + s2 * (0.5 * s2)));
    const double t9 = t8 * (tau[0] - (5.0 * s1 + (t5 + t6 - t7)));
    qdd[0] = t9;
    qdd[1] = 2.0 * t6 - (t9 + c2 * t9);
}
