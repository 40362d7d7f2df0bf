// A wooden bird feeder's seed bell: a wooden pear on a thin thread hangs from a bracket over a table. Odd, but possible.
#include "common.inc"
camera { location <-0.5, 5.0, -13> right x*4/3 up y look_at <0.1, 2.9, 0> angle 46 }
SoftLight(<-9, 15, -11>, <0,0,0>, <1.0,0.92,0.8>*1.9, 3)
SkyDome(<0.6,0.65,0.72>*0.75)
box { <-30,-1,-14>, <30,0,5> Tx(0, Wood(<0.28,0.16,0.08>, <0.55,0.36,0.21>)) }
plane { -z, -8 Tx(0, Matt(<0.50,0.56,0.52>)) }
// A stand with an arm: foot, post, arm and a hook's ring.
union {
  cylinder { <3.4,0,0.6>, <3.4,0.22,0.6>, 1.15 }
  cylinder { <3.4,0.1,0.6>, <3.4,6.1,0.6>, 0.13 }
  cylinder { <3.4,6.0,0.6>, <-0.4,6.0,0.6>, 0.1 }
  sphere { <3.4,6.1,0.6>, 0.16 } sphere { <-0.4,6.0,0.6>, 0.14 }
  Tx(1, T_Brass2) }
// The thread, and the ball that it carries just above a saucer.
cylinder { <0.2,6.0,0.6>, <0.2,2.5,0.6>, 0.022 Tx(2, Matt(<0.80,0.20,0.16>)) }
torus { 0.1, 0.022 rotate z*90 translate <0.2,6.0,0.6> Tx(2, Matt(<0.80,0.20,0.16>)) }
union {
  sphere { <0.2,1.55,0.6>, 0.95 }
  cylinder { <0.2,2.4,0.6>, <0.2,2.6,0.6>, 0.11 }
  Tx(3, Glaze(<0.12,0.34,0.40>)) }
object { Saucer(4, T_Porcelain) scale 0.9 translate <0.2,0,0.6> }
object { Book(5, 3.6, 0.6, 2.6, <0.36,0.10,0.08>) rotate y*12 translate <-5.6,0,0.4> }
union { Cup(6, Glaze(<0.60,0.42,0.12>), 6) scale 0.9 rotate y*200 translate <-2.6,0,-2.2> }
