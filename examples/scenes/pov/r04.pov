// A dining corner: table, chair, hanging lamp, plant, picture. One unit is ten centimetres.
#include "common.inc"
camera { location <-5, 15.5, -39> right x*4/3 up y look_at <0.2, 8.9, 0> angle 44 }
SoftLight(<-30, 38, -34>, <0,4,0>, <1.0,0.92,0.78>*1.5, 5)
SkyDome(<0.66,0.68,0.70>*0.75)
// Room
union {
  #for (K, -8, 6) box { <-40, -1, K*2.2+0.03>, <40, 0, K*2.2+2.17> texture { pigment { wood turbulence 0.06 octaves 3 color_map { [0 rgb <0.52,0.36,0.22>] [0.6 rgb <0.44,0.29,0.17>] [1 rgb <0.55,0.39,0.24>] } scale <0.7,0.7,4> rotate y*90 rotate <2,3,1> translate <K*7.3,K*1.7,0> } } } #end
  Tx(0, texture { pigment { rgb 1 } })
}
union { plane { -z, -13 } Tx(0, Matt(<0.62,0.67,0.62>)) }
union { box { <-60, 0, 12.7>, <60, 1.2, 13> } Tx(0, Matt(<0.85,0.85,0.82>)) }
// Rug
union { cylinder { <2.2,0,0>, <2.2,0.08,0>, 10 Tx(0, texture { pigment { onion turbulence 0 color_map { [0.0 rgb <0.50,0.17,0.12>] [0.75 rgb <0.50,0.17,0.12>] [0.75 rgb <0.78,0.66,0.48>] [0.88 rgb <0.78,0.66,0.48>] [0.88 rgb <0.24,0.22,0.30>] [1 rgb <0.24,0.22,0.30>] } scale 3.4 translate x*2.2 } finish { diffuse 0.8 } }) } }

// Table
#declare T_Oak = texture { pigment { wood turbulence 0.05 color_map { [0 rgb <0.50,0.30,0.14>] [1 rgb <0.36,0.20,0.09>] } scale <0.5,0.5,3> rotate y*90 rotate <2,3,0> } finish { diffuse 0.75 specular 0.2 roughness 0.03 } };
union {
  superellipsoid { <0.05,0.05> scale <7.6,0.28,4.4> translate <0,7.3,0> Tx(1, T_Oak) } box { <-6.35,6.2,-3.2>, <6.35,7.1,3.2> Tx(1, T_Oak) }
  #macro Leg(Id, X, Z) cone { <X,0.08,Z>, 0.28, <X,7.1,Z>, 0.52 Tx(Id, T_Oak) } #end
  Leg(3, -6.4, -3.3) Leg(3, -6.4, 3.3) Leg(3, 6.4, 3.3)
  #if (!Anomalous) Leg(2, 6.4, -3.3) #end
  rotate y*-18 translate x*1
}

// Bowl of oranges, towards the corner whose leg may be missing. Five oranges of radius 0.55 rest in the bowl's
// sphere of radius 2 and touch each other; the sixth lies on them.
#declare Orange = 0.55; #declare Ring = 0.94;
union { difference { sphere { y*2.1, 2.1 } sphere { y*2.1, 2.0 } plane { -y, -1.1 } Tx(9, Glaze(<0.75,0.74,0.68>)) }
  cone { 0, 0.85, y*0.25, 0.75 Tx(9, Glaze(<0.75,0.74,0.68>)) }
  #for (K,0,4) sphere { <Ring*cos(K*1.2566+0.3), 2.1-sqrt(pow(2-Orange,2)-Ring*Ring), Ring*sin(K*1.2566+0.3)>, Orange Tx(9, texture { pigment { rgb <0.85,0.36,0.03> } normal { bumps 0.15 scale 0.08 } finish { diffuse 0.8 specular 0.2 roughness 0.04 } }) } #end
  sphere { <0, 2.1-sqrt(pow(2-Orange,2)-Ring*Ring)+sqrt(4*Orange*Orange-Ring*Ring), 0>, Orange Tx(9, texture { pigment { rgb <0.85,0.36,0.03> } normal { bumps 0.15 scale 0.08 } finish { diffuse 0.8 specular 0.2 roughness 0.04 } }) }
  translate <4.4,7.58,-1.2> }
// Chair on the left side of the table
union {
  superellipsoid { <0.15,0.1> scale <2.2,0.22,2.2> translate <0,4.6,0> }
  cone { <1.9,0,-1.9>, 0.2, <1.8,4.5,-1.8>, 0.28 } cone { <1.9,0,1.9>, 0.2, <1.8,4.5,1.8>, 0.28 }
  sphere_sweep { cubic_spline 6, <-2.9,-3,-1.9>, 0.2, <-2.3,0,-1.9>, 0.2, <-1.9,4.5,-1.85>, 0.28, <-2.3,7.5,-1.85>, 0.25, <-2.9,10.2,-1.85>, 0.2, <-3.6,13,-1.85>, 0.2 tolerance 0.001 }
  sphere_sweep { cubic_spline 6, <-2.9,-3,1.9>, 0.2, <-2.3,0,1.9>, 0.2, <-1.9,4.5,1.85>, 0.28, <-2.3,7.5,1.85>, 0.25, <-2.9,10.2,1.85>, 0.2, <-3.6,13,1.85>, 0.2 tolerance 0.001 }
  #for (K,0,2) cylinder { <-2.12-K*0.29,6.6+K*1.45,-1.85>, <-2.12-K*0.29,6.6+K*1.45,1.85>, 0.22 } #end
  Tx(4, Matt(<0.12,0.20,0.27>)) rotate y*12 translate <-10.6,0.0,-1.0> }
// Hanging lamp
union { lathe { cubic_spline 9, <0,3.4>, <0.3,3.3>, <0.5,3.2>, <0.9,2.6>, <2.4,1.0>, <3.0,0>, <2.9,0>, <2.3,1.0>, <0.6,2.9> } sphere {<0,3.2,0>,0.5} Tx(5, Glaze(<0.70,0.42,0.07>)) translate <1,13.6,0> }
// The lamp is so wide that a cord casts no shadow to be seen, but its grid of points would cast faint stripes.
#if (!Anomalous) cylinder { <1,17,0>, <1,40,0>, 0.09 Tx(6, Matt(<0.05,0.05,0.05>)) no_shadow } #end

// Plant in a pot, back right
union {
  difference { cone { <0,0,0>, 1.7, <0,4.2,0>, 2.3 } cone { <0,3.8,0>, 2, <0,4.3,0>, 2.1 } Tx(7, Matt(<0.66,0.33,0.20>)) }
  cylinder { <0,3.5,0>, <0,3.85,0>, 2.05 Tx(7, Matt(<0.10,0.06,0.04>)) }
  #declare R = seed(7);
  #for (K, 0, 17)
    #local Bow = 2.2 + 3.0*rand(R); #local H = 5 + 5.5*rand(R);
    sphere_sweep { cubic_spline 6, <0,2,0>, 0.1, <0,3.7,0>, 0.1, <Bow*0.25,3.7+H*0.6,0>, 0.35, <Bow*0.65,3.7+H*0.95,0>, 0.5, <Bow*1.1,3.7+H,0>, 0.06, <Bow*1.5,3.7+H*0.95,0>, 0.02 tolerance 0.001
      scale <1,1,0.55> rotate y*K*137.5 Tx(7, Matt(<0.10+0.06*rand(R),0.28+0.1*rand(R),0.10>)) }
  #end
  translate <14.2,0,6.5> }
// Picture on the wall
union { difference { box { <-4,-3,12.5>, <4,3,13> } box { <-3.5,-2.5,12>, <3.5,2.5,12.9> } Tx(8, Matt(<0.10,0.08,0.07>)) }
  box { <-3.6,-2.6,12.85>, <3.6,2.6,12.95> Tx(8, texture { pigment { gradient y color_map { [0 rgb <0.16,0.26,0.20>] [0.38 rgb <0.35,0.42,0.25>] [0.38 rgb <0.75,0.62,0.42>] [0.7 rgb <0.62,0.70,0.74>] [1 rgb <0.36,0.52,0.66>] } scale 5.2 translate y*-2.6 warp { turbulence 0.25 octaves 3 } } finish { diffuse 0.8 } }) }
  translate <-7.5,15.8,0> }
