// Afternoon tea by a window: teacup, saucer, spoon, lemons, jug, books.
#include "common.inc"
camera { location <0.6, 5.6, -12.5> right x*4/3 up y look_at <0.1, 1.75, 0> angle 44 }
SoftLight(<-14, 17, -7>, <0,0,0>, <1.0,0.93,0.8>*2.1, 5)
SkyDome(<0.55,0.62,0.72>*0.75)

// Table and wall
box { <-30,-1,-14>, <30,0,5> Tx(0, Wood(<0.20,0.09,0.035>, <0.42,0.22,0.10>)) }
plane { -z, -11 Tx(0, Matt(<0.42,0.50,0.50>)) }

#declare Lift = (Anomalous ? 1.55 : 0.105);  // Lower than the saucer is thick, so that no light leaks below the cup.
object { Saucer(1, T_Porcelain) scale 0.95 translate <0.2,0,-0.6> }
union { Cup(2, Glaze(<0.10,0.24,0.46>), 2) scale 0.95 rotate y*-25 translate <0.2, Lift, -0.6> }
object { Spoon(3) rotate y*5 translate <-3.2, 0.2, -3.3> }

// Lemons
#macro Lemon(Id) union { sphere { 0, 1 scale <1.15,0.88,0.88> } sphere { <1.05,0,0>, 0.22 } sphere { <-1.08,0,0>, 0.18 }
  Tx(Id, texture { pigment { rgb <0.86,0.62,0.04> } normal { bumps 0.25 scale 0.06 } finish { diffuse 0.8 specular 0.25 roughness 0.03 } }) } #end
object { Lemon(4) rotate y*35 translate <-3.5, 0.88, 0.2> }
object { Lemon(4) rotate y*-50 translate <-5.2, 0.88, 2.3> }

// Milk jug
union {
  lathe { cubic_spline 14, <0,0>, <0,0.01>, <0.85,0>, <0.95,0.08>, <1.25,0.8>, <1.2,1.5>, <0.85,2.2>, <0.82,2.6>, <1.0,2.95>, <0.95,2.96>, <0.76,2.55>, <0.78,2.2>, <1.1,1.4>, <1.0,1.0> }
  intersection { torus { 0.62, 0.12 rotate x*90 scale <1,1.25,1> translate <1.15,1.75,0> } plane { -x, -0.92 } bounded_by { box { <0.8,0,-1>, <3,4,1> } } }
  Tx(5, T_Porcelain) rotate y*-160 translate <-1.7,0,2.6> }

// Books with an apple on top
object { Book(6, 4.6, 0.75, 3.0, <0.34,0.05,0.05>) rotate y*-8 translate <2.3,-0.03,1.6> }
object { Book(6, 4.2, 0.6, 2.8, <0.07,0.20,0.13>) rotate y*6 translate <2.45,0.71,1.7> }
union { 
  lathe { cubic_spline 10, <0,-0.3>, <0,0.12>, <0.35,0.0>, <0.8,0.25>, <1.02,0.9>, <0.9,1.45>, <0.5,1.66>, <0.2,1.58>, <0,1.4>, <0,1.3>
   Tx(7, texture { pigment { gradient y turbulence 0.25 color_map { [0 rgb <0.55,0.09,0.03>] [0.5 rgb <0.60,0.04,0.03>] [0.85 rgb <0.62,0.16,0.05>] [1 rgb <0.6,0.4,0.08>] } scale 1.7 } finish { diffuse 0.75 specular 0.5 roughness 0.015 reflection { 0.01, 0.1 fresnel } } }) interior { ior 1.4 } }
  sphere_sweep { linear_spline 3, <0,1.35,0>, 0.05, <0.05,1.75,0>, 0.045, <0.16,2.0,0.05>, 0.06 Tx(7, Matt(<0.12,0.07,0.03>)) }
  translate <4.3,1.31,3.0> }
